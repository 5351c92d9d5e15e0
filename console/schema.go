package console

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// schemas describes Go types as the JSON schemas of what encoding/json makes of them.
type schemas struct {
	// named are the types that have a name, by it.
	named map[string]any
	// known are the values that a type of strings can have; others can have any.
	known map[reflect.Type][]string
}

// of is the schema of a type: a reference where it has a name. It panics on what
// the API must not contain.
func (s *schemas) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t.Kind() == reflect.Struct && t.Name() != "":
		name := schemaName(t)
		if _, ok := s.named[name]; !ok {
			s.named[name] = nil // a type may hold itself
			s.named[name] = s.object(t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return map[string]any{"anyOf": []any{s.of(t.Elem()), map[string]any{"type": "null"}}}
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		schema := map[string]any{"type": "string"}
		if values := s.known[t]; values != nil {
			schema["enum"] = values
		}
		return schema
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		return map[string]any{"type": "integer"}
	}
	panic(fmt.Sprintf("no schema for %v", t))
}

// object is the schema of a struct: fields of embedded structs are its own, and what
// may be left out is not required.
func (s *schemas) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || name == "" || name == "-" {
			continue
		}
		properties[name] = s.of(f.Type)
		if options != "omitempty" {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": properties, "required": required}
}

// schemaName is the name of a type without the word that all of them share.
func schemaName(t reflect.Type) string {
	return strings.TrimSuffix(strings.TrimSuffix(t.String(), "JSON"), ".")
}
