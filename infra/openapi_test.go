package infra_test

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/pb33f/go-yaml"
	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/pb33f/libopenapi-validator/config"
	"github.com/pb33f/libopenapi-validator/schema_validation"
	"github.com/pb33f/libopenapi/datamodel/high/base"
	v3 "github.com/pb33f/libopenapi/datamodel/high/v3"
	"github.com/pb33f/libopenapi/orderedmap"

	"github.com/kessai/kessai/infra"
)

const (
	jsonType    = "application/json"
	problemType = "application/problem+json"
)

// document is the OpenAPI document and what holds values to its schemas.
type document struct {
	v3.Document
	schemas schema_validation.SchemaValidator
}

func load(t *testing.T) document {
	t.Helper()
	d, err := libopenapi.NewDocument(infra.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	m, err := d.BuildV3Model()
	if err != nil {
		t.Fatal(err)
	}
	return document{m.Model, schema_validation.NewSchemaValidator(config.WithFormatAssertions())}
}

// allows says why the schema refuses the value, nil when it allows it.
func (d document) allows(schema *base.SchemaProxy, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	ok, refused := d.schemas.ValidateSchemaBytes(schema.Schema(), text)
	if ok {
		return nil
	}
	var why []string
	for _, r := range refused {
		for _, s := range r.SchemaValidationErrors {
			why = append(why, s.Error())
		}
		if len(r.SchemaValidationErrors) == 0 {
			why = append(why, r.Reason)
		}
	}
	return fmt.Errorf("%s is refused: %s", text, strings.Join(why, "; "))
}

// operation is one method of one path.
type operation struct {
	*v3.Operation
	method, path string
	parameters   []*v3.Parameter // its own and its path's
}

func (o operation) String() string { return strings.ToUpper(o.method) + " " + o.path }

func (o operation) parameter(in, name string) *v3.Parameter {
	for _, p := range o.parameters {
		if p.In == in && p.Name == name {
			return p
		}
	}
	return nil
}

func (d document) operations() iter.Seq[operation] {
	return func(yield func(operation) bool) {
		for path, item := range d.Paths.PathItems.FromOldest() {
			for method, o := range item.GetOperations().FromOldest() {
				if !yield(operation{o, method, path, slices.Concat(item.Parameters, o.Parameters)}) {
					return
				}
			}
		}
	}
}

// body is one media type of one request or answer.
type body struct {
	*v3.MediaType
	at, mediaType string
	request       bool
}

func (d document) bodies() iter.Seq[body] {
	return func(yield func(body) bool) {
		for o := range d.operations() {
			if o.RequestBody != nil {
				for mediaType, m := range o.RequestBody.Content.FromOldest() {
					if !yield(body{m, o.String() + " request", mediaType, true}) {
						return
					}
				}
			}
			for status, r := range o.Responses.Codes.FromOldest() {
				for mediaType, m := range r.Content.FromOldest() {
					if !yield(body{m, o.String() + " " + status, mediaType, false}) {
						return
					}
				}
			}
		}
	}
}

func decoded(t *testing.T, node *yaml.Node) any {
	t.Helper()
	var value any
	if err := node.Decode(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

func TestTheDocumentIsValid(t *testing.T) {
	d, err := libopenapi.NewDocument(infra.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	v, errs := validator.NewValidator(d)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	_, refused := v.ValidateDocument()
	for _, r := range refused {
		t.Error(r.Message, r.Reason)
		for _, s := range r.SchemaValidationErrors {
			t.Error(s.Reason, s.KeywordLocation, s.InstancePath)
		}
	}
}

func TestEveryBodyHasExamplesThatItsSchemaAllows(t *testing.T) {
	d := load(t)
	for b := range d.bodies() {
		if b.Schema == nil { // a PSP's own body
			continue
		}
		if orderedmap.Len(b.Examples) == 0 {
			t.Errorf("%s: got no example", b.at)
		}
		for name, example := range b.Examples.FromOldest() {
			if err := d.allows(b.Schema, decoded(t, example.Value)); err != nil {
				t.Errorf("%s: example %s: %v", b.at, name, err)
			}
		}
	}
}

func TestEveryParameterAndHeaderHasAnExampleThatItsSchemaAllows(t *testing.T) {
	d := load(t)
	check := func(at string, schema *base.SchemaProxy, example *yaml.Node) {
		if example == nil {
			t.Errorf("%s: got no example", at)
		} else if err := d.allows(schema, decoded(t, example)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
	for o := range d.operations() {
		for _, p := range o.parameters {
			check(o.String()+" "+p.Name, p.Schema, p.Example)
		}
		for status, r := range o.Responses.Codes.FromOldest() {
			for name, h := range r.Headers.FromOldest() {
				check(o.String()+" "+status+" "+name, h.Schema, h.Example)
			}
		}
	}
}

func TestEverySchemaAllowsItsOwnExamples(t *testing.T) {
	d := load(t)
	for name, s := range d.Components.Schemas.FromOldest() {
		for _, example := range s.Schema().Examples {
			if err := d.allows(s, decoded(t, example)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestEveryComponentIsUsed(t *testing.T) {
	d := load(t)
	text := string(infra.OpenAPI)
	names := map[string][]string{
		"schemas":    slices.Collect(maps.Keys(maps.Collect(d.Components.Schemas.FromOldest()))),
		"responses":  slices.Collect(maps.Keys(maps.Collect(d.Components.Responses.FromOldest()))),
		"parameters": slices.Collect(maps.Keys(maps.Collect(d.Components.Parameters.FromOldest()))),
		"headers":    slices.Collect(maps.Keys(maps.Collect(d.Components.Headers.FromOldest()))),
		"examples":   slices.Collect(maps.Keys(maps.Collect(d.Components.Examples.FromOldest()))),
	}
	for kind, all := range names {
		for _, name := range all {
			if !strings.Contains(text, fmt.Sprintf(`"#/components/%s/%s"`, kind, name)) {
				t.Errorf("%s/%s: got no use of it", kind, name)
			}
		}
	}
}
