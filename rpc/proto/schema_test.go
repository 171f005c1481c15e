package proto

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/approval/rules"
	"github.com/confine-dev/confine/sandbox"
	"github.com/confine-dev/confine/sandbox/harden"
)

var update = flag.Bool("update", false, "write docs/protocol.schema.json anew")

const (
	schemaFile   = "../../docs/protocol.schema.json"
	documentFile = "../../docs/protocol.md"
)

// schema writes the types of Methods as a JSON Schema. What a client may
// leave out is optional; no object is closed, so that fields can be added.
type schema struct {
	defs map[string]any
}

// closedSets are the values of string types that have no others.
var closedSets = map[reflect.Type][]string{
	reflect.TypeFor[sandbox.Mode]():             names(sandbox.Modes),
	reflect.TypeFor[sandbox.Stream]():           {"stdout", "stderr"},
	reflect.TypeFor[sandbox.Facet]():            names(sandbox.Facets),
	reflect.TypeFor[sandbox.Resource]():         names(sandbox.Resources),
	reflect.TypeFor[sandbox.FacetState]():       {"enforced", "partial", "open", "unverified"},
	reflect.TypeFor[sandbox.Enforcement]():      {"full", "partial"},
	reflect.TypeFor[sandbox.Evidence]():         {"observed", "stderr"},
	reflect.TypeFor[sandbox.ObservationState](): {"full", "partial", "none"},
	reflect.TypeFor[rules.Decision]():           {"allow", "ask", "deny"},
	reflect.TypeFor[Outlook]():                  {"runs", "asks", "refused"},
	reflect.TypeFor[Status]():                   {"running", "completed", "cancelled", "refused"},
	reflect.TypeFor[ApprovalSource]():           {"person", "rule"},
	reflect.TypeFor[ProbeState]():               {"probing", "ready"},
	reflect.TypeFor[Severity]():                 {"warning", "error"},
}

// fieldTypes are the types of fields that Go only calls a string, a number or
// anything.
var fieldTypes = map[reflect.Type]map[string]map[string]any{
	reflect.TypeFor[Question]():              {"Kind": oneOf(questionKinds...)},
	reflect.TypeFor[Option]():                {"Kind": oneOf(optionKinds...), "Scope": oneOf(approval.ScopeOnce, approval.ScopeSession)},
	reflect.TypeFor[Approval]():              {"Scope": oneOf(ApprovalOfSession, ApprovalOfSettings), "Outcome": oneOf(approval.AllowedSession, approval.Rejected, approval.Cancelled)},
	reflect.TypeFor[ApprovalOutcome]():       {"Outcome": oneOf(OutcomeSelected, OutcomeCancelled)},
	reflect.TypeFor[ApprovalWithdrawn]():     {"Reason": oneOf(WithdrawnExpired, WithdrawnCancelled)},
	reflect.TypeFor[ApprovalFacts]():         {"Outcome": oneOf(outcomes...), "By": oneOf(deciders...)},
	reflect.TypeFor[FailureData]():           {"Code": oneOf(failures...), "Name": oneOf(UnavailableName)},
	reflect.TypeFor[WorkDoneProgressBegin](): {"Kind": oneOf(ProgressBegin)},
	reflect.TypeFor[WorkDoneProgressEnd]():   {"Kind": oneOf(ProgressEnd)},
	reflect.TypeFor[RunCommandParams]():      {"WorkDoneToken": progressToken},
	reflect.TypeFor[EscalationParams]():      {"WorkDoneToken": progressToken},
	reflect.TypeFor[ExecuteCommandParams]():  {"WorkDoneToken": progressToken},
	reflect.TypeFor[ProgressParams]():        {"Token": progressToken},
	reflect.TypeFor[ProgressTokenParams]():   {"Token": progressToken},
	reflect.TypeFor[CancelParams]():          {"ID": {"type": []string{"number", "string"}}},
}

var (
	questionKinds = []approval.Kind{approval.KindCommand, approval.KindEscalation}
	optionKinds   = []approval.OptionKind{approval.AllowOnce, approval.AllowAlways, approval.RejectOnce, approval.RejectAlways}
	outcomes      = []approval.Outcome{approval.AllowedOnce, approval.AllowedSession, approval.AllowedAlways, approval.Rejected, approval.Cancelled, approval.TimedOut, approval.Unavailable}
	deciders      = []approval.By{approval.ByLimits, approval.ByPolicy, approval.ByMemory, approval.ByGrant, approval.ByPerson, approval.ByDefault}
	startFailures = []sandbox.StartErrorKind{sandbox.ProgramNotFound, sandbox.ProgramNotExecutable, sandbox.BadWorkingDirectory, sandbox.ArgumentListTooLong, sandbox.NoTerminal}
	failures      = append(names(startFailures), FailureSandboxUnavailable, FailureTooManyRuns, FailureTooManySessions, FailureGrantChanged, FailureSettings, FailureSettingsChanged, FailureInputClosed, FailureNotRecorded, "SERVER_BUSY")
	progressToken = map[string]any{"type": []string{"integer", "string"}}
)

func oneOf[T ~string](values ...T) map[string]any {
	return map[string]any{"type": "string", "enum": names(values)}
}

// nullable are the fields that LSP lets a client set to null, and those of ours for
// which null has a meaning.
var nullable = map[reflect.Type][]string{
	reflect.TypeFor[InitializeParams]():      {"ProcessID", "RootURI", "WorkspaceFolders"},
	reflect.TypeFor[harden.Control[int]]():   {"Value", "Wanted"},
	reflect.TypeFor[harden.Control[int64]](): {"Value", "Wanted"},
	reflect.TypeFor[harden.Control[bool]]():  {"Value", "Wanted"},
}

// orNull is what s allows, or null.
func orNull(s map[string]any) map[string]any {
	name, single := s["type"].(string)
	if _, closed := s["enum"]; single && !closed {
		s = maps.Clone(s)
		s["type"] = []string{name, "null"}
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
}

func names[T ~string](values []T) []string {
	var out []string
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// of is the schema of a type; structs of ours become definitions.
func (s *schema) of(t reflect.Type) map[string]any {
	if set, ok := closedSets[t]; ok {
		return map[string]any{"type": "string", "enum": set}
	}
	switch {
	case t == reflect.TypeFor[json.RawMessage](), t.Kind() == reflect.Interface:
		return map[string]any{}
	case t == reflect.TypeFor[Null]():
		return map[string]any{"type": "null"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		m := map[string]any{"type": "object", "additionalProperties": s.of(t.Elem())}
		if set, ok := closedSets[t.Key()]; ok {
			m["propertyNames"] = map[string]any{"enum": set}
		}
		return m
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Struct:
		return s.object(t)
	}
	panic(fmt.Sprintf("no schema for %v", t))
}

func (s *schema) object(t reflect.Type) map[string]any {
	name := defName(t)
	ref := map[string]any{"$ref": "#/$defs/" + name}
	if _, done := s.defs[name]; done {
		return ref
	}
	def := map[string]any{"type": "object"}
	s.defs[name] = def // before its fields, which may lead back here
	properties, required := map[string]any{}, []string{}
	for _, f := range fields(t) {
		property, ok := fieldTypes[t][f.goName]
		if !ok {
			property = s.of(f.typ)
		}
		if slices.Contains(nullable[t], f.goName) {
			property = orNull(property)
		}
		properties[f.name] = property
		if !f.optional {
			required = append(required, f.name)
		}
	}
	def["properties"] = properties
	if len(required) > 0 {
		def["required"] = required
	}
	return ref
}

// defName is the name of a type's definition, which stands in a URI.
func defName(t reflect.Type) string {
	if t == reflect.TypeFor[harden.State]() {
		return "Hardening"
	}
	return strings.NewReplacer("[", "_", "]", "").Replace(t.Name())
}

type field struct {
	name     string // on the wire
	goName   string
	typ      reflect.Type
	optional bool
}

func fields(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		tag, ok := f.Tag.Lookup("json")
		if !ok || f.Anonymous || !f.IsExported() || skipped(t, f.Name) {
			continue
		}
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		out = append(out, field{name, f.Name, f.Type, strings.Contains(options, "omitempty")})
	}
	return out
}

// sent lists the fields that are used of a struct with more.
var sent = map[reflect.Type][]string{
	reflect.TypeFor[ServerCapabilities]():    {"ExecuteCommandProvider", "Workspace", "Experimental"},
	reflect.TypeFor[WorkspaceCapabilities](): {"WorkspaceFolders"},
	reflect.TypeFor[WorkDoneProgressBegin](): {"Kind", "Title", "Cancellable"},
	reflect.TypeFor[WorkDoneProgressEnd]():   {"Kind"},
}

// skipped keeps what this server never sends out of the schema.
func skipped(t reflect.Type, name string) bool {
	used, partial := sent[t]
	return partial && !slices.Contains(used, name)
}

func generate(t *testing.T) []byte {
	t.Helper()
	s := &schema{defs: map[string]any{}}
	methods := map[string]any{}
	for _, m := range Methods {
		entry := map[string]any{"from": "client", "kind": "notification"}
		switch {
		case m.BothWays:
			entry["from"] = "both"
		case m.ToEditor:
			entry["from"] = "server"
		}
		if m.Params != nil {
			entry["params"] = s.of(reflect.TypeOf(m.Params))
		}
		if m.IsRequest {
			entry["kind"] = "request"
			entry["result"] = s.of(reflect.TypeOf(m.Result))
			if reflect.TypeOf(m.Result).Kind() == reflect.Pointer {
				entry["result"] = orNull(s.of(reflect.TypeOf(m.Result)))
			}
		}
		methods[m.Name] = entry
	}
	// What is carried where the types say "anything".
	s.of(reflect.TypeFor[ClientExperimental]())
	s.of(reflect.TypeFor[ServerExperimental]())
	s.of(reflect.TypeFor[WorkDoneProgressBegin]())
	s.of(reflect.TypeFor[WorkDoneProgressEnd]())
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(map[string]any{
		"$schema":         "https://json-schema.org/draft/2020-12/schema",
		"title":           "confine protocol",
		"protocolVersion": ProtocolVersion,
		"methods":         methods,
		"commands":        ServerCommands,
		"$defs":           s.defs,
	}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSchemaIsThatOfTheCode(t *testing.T) {
	got := generate(t)
	if *update {
		if err := os.WriteFile(schemaFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what the code says: run go generate ./rpc/proto, read the difference, and change docs/protocol.md with it", schemaFile)
	}
}

// TestDocumentNamesEverything fails when a method, command, field, status,
// error code or failure is not in the document, or the document writes about a
// method that is not there.
func TestDocumentNamesEverything(t *testing.T) {
	data, err := os.ReadFile(documentFile)
	if err != nil {
		t.Fatal(err)
	}
	document := string(data)
	mention := func(what, name string) {
		t.Helper()
		if !strings.Contains(document, "`"+name+"`") {
			t.Errorf("%s does not mention the %s `%s`", documentFile, what, name)
		}
	}
	known := map[string]bool{}
	for _, m := range Methods {
		mention("method", m.Name)
		known[m.Name] = true
	}
	for _, command := range ServerCommands {
		mention("command", command)
		known[command] = true
	}
	for _, name := range fieldNames(t) {
		mention("field", name)
	}
	for name, value := range constants(t) {
		if known[value] {
			continue
		}
		mention("value of "+name, value)
	}
	for _, value := range slices.Concat(names(questionKinds), names(outcomes), names(optionKinds), names(deciders), failures) {
		mention("value", value)
	}
	for _, heading := range regexp.MustCompile("(?m)^### `([^`]+)`").FindAllStringSubmatch(document, -1) {
		if !known[heading[1]] {
			t.Errorf("%s has a section on %q, which is no method", documentFile, heading[1])
		}
	}
}

// fieldNames lists every field that can be on the wire.
func fieldNames(t *testing.T) []string {
	t.Helper()
	var parsed struct {
		Defs map[string]struct {
			Properties map[string]any `json:"properties"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(generate(t), &parsed); err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, def := range parsed.Defs {
		for name := range def.Properties {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// constants lists the literal constants of this package, by name.
func constants(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"methods.go", "errors.go", "run.go", "runs.go", "approval.go", "approvals.go", "capabilities.go", "lsp.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), pattern, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || spec.Names[0].Obj == nil || spec.Names[0].Obj.Kind != ast.Con {
				return true
			}
			for i, value := range spec.Values {
				if text, ok := literal(value); ok {
					found[spec.Names[i].Name] = text
				}
			}
			return true
		})
	}
	if len(found) < 40 {
		t.Fatalf("found only %d constants: the search is broken", len(found))
	}
	return found
}

// literal is a string or a negative number as written.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return strings.Trim(e.Value, `"`), true
		}
	case *ast.UnaryExpr:
		if lit, ok := e.X.(*ast.BasicLit); ok && e.Op == token.SUB {
			return "-" + lit.Value, true
		}
	}
	return "", false
}

// TestMethodsAreComplete fails when a method has a name but no description.
func TestMethodsAreComplete(t *testing.T) {
	described := map[string]bool{}
	for _, m := range Methods {
		if described[m.Name] {
			t.Errorf("%s is described twice", m.Name)
		}
		described[m.Name] = true
		if (m.Result != nil) != m.IsRequest {
			t.Errorf("%s: a request has a result, a notification none", m.Name)
		}
	}
	for name, method := range constants(t) {
		if strings.HasPrefix(name, "Method") && !described[method] {
			t.Errorf("%s is not in Methods", name)
		}
	}
}
