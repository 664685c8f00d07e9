package machines

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// trust lets functions and machines have the role. It needs no rights: the emulator asks for none when a machine calls
// a function, and the function calls nothing but its script.
const trust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":["lambda.amazonaws.com","states.amazonaws.com"]},"Action":"sts:AssumeRole"}]}`

// makeRole makes the role of a run and returns its ARN. The emulator takes none that does not exist.
func makeRole(ctx context.Context, endpoint, name string) (arn string, err error) {
	err = iam(ctx, endpoint, url.Values{"Action": {"CreateRole"}, "RoleName": {name}, "AssumeRolePolicyDocument": {trust}})
	return "arn:aws:iam::000000000000:role/" + name, err
}

func deleteRole(ctx context.Context, endpoint, name string) error {
	return iam(ctx, endpoint, url.Values{"Action": {"DeleteRole"}, "RoleName": {name}})
}

// iam calls an operation of IAM, for two of which no client is worth having.
func iam(ctx context.Context, endpoint string, form url.Values) error {
	form.Set("Version", "2010-05-08")
	content := form.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", strings.NewReader(content))
	if err != nil {
		return fmt.Errorf("%s: %w", form.Get("Action"), err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	sum := sha256.Sum256([]byte(content))
	root := aws.Credentials{AccessKeyID: rootKey, SecretAccessKey: rootKey}
	if err := v4.NewSigner().SignHTTP(ctx, root, request, hex.EncodeToString(sum[:]), "iam", region, time.Now()); err != nil {
		return fmt.Errorf("%s: %w", form.Get("Action"), err)
	}
	answer, err := fresh.Do(request)
	if err != nil {
		return fmt.Errorf("%s: %w", form.Get("Action"), err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(answer.Body, 1000)) // a part of it is better than nothing
		return fmt.Errorf("%s: %s: %s", form.Get("Action"), answer.Status, body)
	}
	return nil
}
