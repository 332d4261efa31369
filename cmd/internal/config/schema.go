package config

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// Schema returns the JSON Schema (2020-12) of a file, for editors.
func Schema() ([]byte, error) {
	s := schemaOf(reflect.TypeFor[Config]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "dibs serve"
	s["required"] = []string{"version", "jobs"}
	return json.MarshalIndent(s, "", "  ")
}

var marshaler = reflect.TypeFor[encoding.TextMarshaler]()

func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[List]():
		text := map[string]any{"type": "string"}
		return map[string]any{"oneOf": []any{text, map[string]any{"type": "array", "items": text}}}
	case t == reflect.TypeFor[Size]():
		return map[string]any{"type": []string{"string", "integer"}}
	case t.Implements(marshaler):
		return map[string]any{"type": "string"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Struct:
		properties := make(map[string]any)
		for f := range t.Fields() {
			if name := f.Tag.Get("yaml"); name != "" && name != "-" {
				one := schemaOf(f.Type)
				one["description"] = f.Tag.Get("doc")
				properties[name] = one
			}
		}
		return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Int:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	}
	return map[string]any{"type": "string"}
}
