// Package schema checks a call's arguments and a tool's output against the JSON Schema that the tool declares.
//
// Schemas and values both come from strangers: servers write the first, models the second. So
//   - nothing is ever loaded: a $ref outside the schema makes it unusable, and no file or network is touched;
//   - a schema that cannot be used never blocks a call: only "type: object" is checked then, and Note says so;
//   - size, depth, the length of numbers and the number of evaluation steps are bounded;
//   - an error names each wrong field and what is wanted there, and never a value that was given.
//
// A Schema and a Cache may be used by any number of goroutines. Errors are vakerr.InvalidArguments, or vakerr.TooLarge
// for a value beyond the bounds.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of what is read.
const (
	MaxSchemaBytes = 1 << 20 // of one schema's text
	MaxValueBytes  = 4 << 20 // of one value's text
	maxDepth       = 100     // of either, in nested arrays and objects
	maxNumber      = 400     // digits of a number's text, and its decimal exponent
	maxSteps       = 1 << 20 // schema evaluations of one check, weighed by their width
	maxProduct     = 1 << 25 // values of an instance times the widest enum or combinator of its schema
)

// Schema is one compiled schema, or the fallback for one that cannot be compiled. Make it with Compile.
type Schema struct {
	note string // why only the type is checked; empty when all is

	mu       sync.Mutex // guards steps, and with it compiled: one check runs at a time
	steps    int        // left to the running check
	compiled *jsonschema.Schema
	width    int // the largest number of alternatives one schema object holds
}

// Compile reads a schema. It always returns one that can be used; see Note.
func Compile(raw json.RawMessage) *Schema {
	s := &Schema{}
	if err := s.compile(raw); err != nil {
		return &Schema{note: "the schema cannot be used (" + err.Error() + "): only that the value is an object is checked"}
	}
	return s
}

// Note is why this schema checks less than it says, for the person who wrote it; empty when it checks everything.
func (s *Schema) Note() string { return s.note }

var (
	errTooLarge  = errors.New("it is larger than 1 MiB")
	errDynamic   = errors.New("$dynamicRef and $recursiveRef are not supported")
	errNotObject = errors.New("it is not an object")
	errNotValid  = errors.New("it is no valid JSON Schema, or refers to another document")
	errFailed    = errors.New("the compiler failed on it")
)

func (s *Schema) compile(raw json.RawMessage) (err error) {
	if len(raw) > MaxSchemaBytes {
		return errTooLarge
	}
	doc, _, err := decode(raw)
	if err != nil {
		return err
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return errNotObject
	}
	if dialect, _ := object["$schema"].(string); !knownDialect(dialect) {
		delete(object, "$schema") // a private dialect is read as the default one
	}
	// The compiler is fed with foreign text; should it panic, one schema is unusable and nothing else happens.
	defer func() {
		if recover() != nil {
			err = errFailed
		}
	}()
	const location = "schema:input"
	c := jsonschema.NewCompiler()
	c.UseLoader(refuse{})
	c.UseRegexpEngine(compilePattern)
	if err := c.AddResource(location, object); err != nil {
		return errNotValid
	}
	if s.compiled, err = c.Compile(location); err != nil {
		return errNotValid
	}
	return s.instrument()
}

// refuse is the loader of a compiler that must not load anything.
type refuse struct{}

func (refuse) Load(string) (any, error) {
	return nil, errors.New("references to other documents are not followed")
}

func knownDialect(url string) bool {
	switch string(bytes.TrimRight([]byte(url), "#")) {
	case "http://json-schema.org/draft-04/schema", "http://json-schema.org/draft-06/schema",
		"http://json-schema.org/draft-07/schema", "https://json-schema.org/draft/2019-09/schema",
		"https://json-schema.org/draft/2020-12/schema":
		return true
	}
	return false
}

// check runs the validator over a decoded value. It returns the validator's finding, nil for a valid value, or an error
// when the value is too costly to check.
func (s *Schema) check(value any, values int) (*jsonschema.ValidationError, error) {
	if s.compiled == nil {
		return nil, nil
	}
	if values*s.width > maxProduct {
		return nil, errCostly
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = maxSteps
	return s.validateLocked(value)
}

var errCostly = errors.New("it takes too many steps to check against the schema")

func (s *Schema) validateLocked(value any) (finding *jsonschema.ValidationError, err error) {
	defer func() {
		if caught := recover(); caught != nil {
			finding, err = nil, errCostly
			if caught != any(errCostly) {
				err = fmt.Errorf("the validator failed on it")
			}
		}
	}()
	if failed := s.compiled.Validate(value); failed != nil {
		if errors.As(failed, &finding) {
			return finding, nil
		}
		return nil, failed
	}
	return nil, nil
}
