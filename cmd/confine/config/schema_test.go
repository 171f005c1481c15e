package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of keys in docs/configuration.md anew")

const (
	referenceFile = "../../../docs/configuration.md"
	tableBegin    = "<!-- The table is written by: go test ./cmd/confine/config -run Reference -update -->\n"
	tableEnd      = "<!-- end of the table -->\n"
)

func TestReferenceIsInTheDocumentation(t *testing.T) {
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), tableBegin)
	table, after, ended := strings.Cut(rest, tableEnd)
	if !found || !ended {
		t.Fatalf("%s has no place for the table", referenceFile)
	}
	if table == Reference() {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not that of the keys; write it with -update", referenceFile)
	}
	if err := os.WriteFile(referenceFile, []byte(before+tableBegin+Reference()+tableEnd+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSchemaKnowsEveryKey reads a document that has every key by the schema's own
// words.
func TestSchemaKnowsEveryKey(t *testing.T) {
	data, err := json.Marshal(Schema())
	if err != nil {
		t.Fatal(err)
	}
	type node struct {
		Type       string
		Enum       []string
		Closed     *bool `json:"additionalProperties"`
		Properties map[string]json.RawMessage
	}
	var top node
	if err := json.Unmarshal(data, &top); err != nil {
		t.Fatal(err)
	}
	if top.Closed == nil || *top.Closed {
		t.Error("the schema lets unknown keys pass")
	}
	var limits node
	if err := json.Unmarshal(top.Properties["limits"], &limits); err != nil {
		t.Fatal(err)
	}
	for _, name := range KeyNames() {
		place, inner := top.Properties, name
		if rest, nested := strings.CutPrefix(name, "limits."); nested {
			place, inner = limits.Properties, rest
		}
		if place[inner] == nil {
			t.Errorf("the schema does not know %s", name)
		}
	}
	var mode node
	if err := json.Unmarshal(top.Properties["sandbox_mode"], &mode); err != nil || len(mode.Enum) != 4 {
		t.Errorf("sandbox_mode: got %+v, %v", mode, err)
	}
	if bytes.Contains(data, []byte("null")) {
		t.Errorf("the schema has a null in it: %s", data)
	}
}

func TestEveryKeySaysWhatTightensIt(t *testing.T) {
	for i := range Keys {
		k := &Keys[i]
		if k.order == nil || k.Meaning == "" {
			t.Errorf("%s has no order or no meaning", k.Name)
		}
		if k.Kind == List && (k.form == nil || k.Default == nil) {
			t.Errorf("%s reads no paths or has no default", k.Name)
		}
		if _, ranks := k.order.(ranked); ranks && k.Default == nil {
			t.Errorf("%s is ranked and has no default", k.Name)
		}
	}
}
