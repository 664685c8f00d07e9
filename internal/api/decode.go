package api

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/kessai/kessai/internal/problem"
)

const (
	// maxBody is the largest body in bytes. The largest honest one, a checkout of
	// 50 items, is a fifth of it.
	maxBody = 65_536
	// maxDepth is how deep objects and lists may be nested. The deepest that a route
	// reads is three.
	maxDepth = 16
)

// value is one JSON value as it was read.
type value struct {
	kind     jsontext.Kind
	text     string // of a string its content, of anything else its text as written
	members  []member
	elements []value
}

// member is one name of an object and its value.
type member struct {
	name  string
	value value
}

func invalidJSON() *problem.Error {
	return problem.New(problem.InvalidJSON, "The body is not one strict JSON object in UTF-8.")
}

// decode reads a body as one JSON object. No body is an empty object. Everything
// that two readers might take for different things is refused: names twice,
// invalid UTF-8, data after the object.
func decode(body []byte) (value, error) {
	if len(body) > maxBody {
		return value{}, problem.New(problem.BodyTooLarge, "A body may be up to 65536 bytes.")
	}
	if len(bytes.Trim(body, " \t\r\n")) == 0 {
		return value{kind: jsontext.KindBeginObject}, nil
	}
	// U+FFFD is what a gateway puts in place of invalid UTF-8.
	if bytes.ContainsRune(body, '\uFFFD') {
		return value{}, invalidJSON()
	}
	r := treeReader{decoder: jsontext.NewDecoder(bytes.NewReader(body))}
	root, err := r.read()
	if err == nil && root.kind != jsontext.KindBeginObject {
		err = errNoObject
	}
	if err == nil {
		if _, end := r.decoder.ReadToken(); !errors.Is(end, io.EOF) {
			err = errTrailing
		}
	}
	if r.card {
		return value{}, cardRejected()
	}
	if err != nil {
		return value{}, invalidJSON()
	}
	return root, nil
}

func cardRejected() *problem.Error {
	return problem.New(problem.CardDataRejected, "A field holds what looks like a card number. Send a token of the payment service provider instead.")
}

var (
	errNoObject = errors.New("api: body is no object")
	errTrailing = errors.New("api: data after the body")
	errDepth    = errors.New("api: body is nested too deeply")
)

// treeReader reads values and looks at every text on the way.
type treeReader struct {
	decoder *jsontext.Decoder
	card    bool // a text looked like a card number
}

func (r *treeReader) read() (value, error) {
	token, err := r.decoder.ReadToken()
	if err != nil {
		return value{}, err
	}
	v := value{kind: token.Kind()}
	if v.kind == jsontext.KindBeginObject {
		return v, r.object(&v)
	}
	if v.kind == jsontext.KindBeginArray {
		return v, r.array(&v)
	}
	v.text = strings.Clone(token.String())
	r.card = r.card || cardLike(v.text)
	return v, nil
}

func (r *treeReader) object(v *value) error {
	if r.decoder.StackDepth() > maxDepth {
		return errDepth
	}
	for r.decoder.PeekKind() != jsontext.KindEndObject {
		name, err := r.decoder.ReadToken()
		if err != nil {
			return err
		}
		m := member{name: strings.Clone(name.String())}
		r.card = r.card || cardLike(m.name)
		if m.value, err = r.read(); err != nil {
			return err
		}
		v.members = append(v.members, m)
	}
	_, err := r.decoder.ReadToken()
	return err
}

func (r *treeReader) array(v *value) error {
	if r.decoder.StackDepth() > maxDepth {
		return errDepth
	}
	for r.decoder.PeekKind() != jsontext.KindEndArray {
		element, err := r.read()
		if err != nil {
			return err
		}
		v.elements = append(v.elements, element)
	}
	_, err := r.decoder.ReadToken()
	return err
}
