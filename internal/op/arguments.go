package op

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"github.com/vak-actors/vak-actors/internal/vakerr"
)

// Decode reads the arguments of a call into the struct that into points to. Fields that the struct does not know are an
// error, so an op refuses them even where no schema was checked. The error is vakerr.InvalidArguments; it names the field
// and holds no value.
func Decode(arguments json.RawMessage, into any) error {
	if !isObject(arguments) {
		return invalid("a JSON object is expected", nil)
	}
	dec := json.NewDecoder(bytes.NewReader(arguments))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return invalid(fault(err), err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return invalid("there is more than one JSON value", err)
	}
	return nil
}

func invalid(what string, cause error) error {
	return vakerr.New(vakerr.InvalidArguments, "the arguments cannot be read: %s", what).
		WithRemedy("send one JSON object as the input schema describes it").WithCause(cause)
}

// fault says what a decoder's error is about without the value it may quote.
func fault(err error) string {
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) && wrongType.Field != "" {
		return "field " + strconv.Quote(wrongType.Field) + " has the wrong type"
	}
	const unknown = `json: unknown field `
	if name, ok := strings.CutPrefix(err.Error(), unknown); ok {
		if len(name) > 66 {
			name = strings.ToValidUTF8(name[:66], "") + `…"`
		}
		return "there is no field " + name
	}
	return "they are no valid JSON of the expected form"
}
