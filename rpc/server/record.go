package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// record is what is known now of this host and this server under some settings.
// Everybody who shows any of it shows this.
func (c *client) record(s *Settings) proto.Record {
	r := proto.Record{
		Mode:             s.Mode,
		Provider:         c.confiner(s),
		Settings:         s.shown(),
		Providers:        orEmpty(c.probing.all()),
		SettingsProblems: orEmpty(c.problems(s)),
		Hints:            orEmpty(c.o.Hints),
		Limits:           c.limits(),
	}
	if c.o.Hardening != nil {
		state := c.o.Hardening()
		r.Hardening = &state
	}
	r.OK, r.Problems = c.verdict(s, r)
	return r
}

// verdict says whether the configured mode can be enforced, or why not. Until the
// providers have been tried neither is known.
func (c *client) verdict(s *Settings, r proto.Record) (ok bool, problems []string) {
	if err := s.usable(); err != nil {
		return false, []string{err.Error()}
	}
	if !r.Mode.Confined() {
		return true, []string{} // nothing is to be enforced
	}
	problems = []string{}
	auto := s.Provider == "" || s.Provider == sandbox.ProviderAuto
	known := slices.ContainsFunc(r.Providers, ofThisSystem)
	for _, report := range r.Providers {
		switch {
		case report.Provider == r.Provider && report.Usable:
			return true, []string{}
		case s.Provider == report.Provider, auto && (!known || ofThisSystem(report)):
			sentence := append([]string{fmt.Sprintf("provider %s cannot be used: %s", report.Provider, report.Reason)}, report.Remedies...)
			problems = append(problems, strings.Join(sentence, "; "))
		}
	}
	return false, problems
}

// ofThisSystem reports whether a provider exists for this system at all. That others
// cannot be used explains nothing where one of these might be.
func ofThisSystem(r sandbox.Report) bool { return r.Kind != "" }

// confiner names the provider that confines commands, as far as is known yet.
func (c *client) confiner(s *Settings) string {
	if s.Confined == nil {
		return sandbox.ProviderNone
	}
	name := s.Confined.Name()
	if report, tried := c.probing.of(name); tried && !report.Usable {
		return sandbox.ProviderNone
	}
	return name
}

func (c *client) limits() proto.Limits {
	textBytes := sandbox.DefaultKeep
	if c.o.KeepOutput > 0 {
		textBytes = c.o.KeepOutput
	}
	return proto.Limits{
		DefaultTimeoutMs: sandbox.DefaultTimeout.Milliseconds(),
		MaxTimeoutMs:     sandbox.MaxTimeout.Milliseconds(),
		TextBytes:        textBytes,
		ChunkBytes:       chunkBytes,
		UnsentBytes:      unsentBytes,
		InputBytes:       sandbox.MaxQueuedInput,
		FinishedRuns:     keepFinished,
		FinishedRunMs:    keepFor.Milliseconds(),
		Background:       maxBackground,
		Sessions:         maxSessions,
	}
}

// commandDoctor tells the person what can be enforced, when that is known.
func (c *client) commandDoctor() (any, error) {
	id, err := newRunID("")
	if err != nil {
		return nil, err
	}
	c.working.Go(func() {
		select {
		case <-c.probing.done:
			c.notify(proto.MethodShowMessage, proto.ShowMessageParams{Type: proto.MessageInfo, Message: c.diagnosis()})
		case <-c.ctx.Done():
		}
	})
	return proto.Started{RunID: id}, nil
}

// diagnosis is the record in the words of a message.
func (c *client) diagnosis() string {
	r := c.record(c.settings())
	var b strings.Builder
	fmt.Fprintf(&b, "confine %s: sandbox_mode is %s.", sayable(c.o.Version), r.Mode)
	if !r.OK && c.settings().Refusal != "" {
		b.WriteString("\n" + sayable(r.Problems[0]))
	}
	if len(r.Providers) == 0 {
		b.WriteString("\nNo sandbox provider is known on this system.")
	}
	for _, p := range r.Providers {
		state := "usable"
		if !p.Usable {
			state = "not usable"
		}
		fmt.Fprintf(&b, "\n%s: %s", p.Provider, state)
		if p.Reason != "" {
			b.WriteString("; " + sayable(p.Reason))
		}
		for _, remedy := range p.Remedies {
			b.WriteString("\n  " + sayable(remedy))
		}
	}
	for _, hint := range r.Hints {
		b.WriteString("\n" + sayable(hint))
	}
	return b.String()
}
