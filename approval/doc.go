// Package approval decides whether a command may run under a wider policy than
// the configured one, asking a person when nothing else answers.
//
// It decides and asks; it confines nothing (package sandbox does) and draws
// nothing (a Prompter does). Commands, paths, justifications and every other
// text of a Request are treated as hostile: a Question carries them escaped, so
// that what is shown is what runs. Whatever goes wrong, the answer is not yes.
//
//	audit, err := approval.OpenAudit(path, approval.AuditOptions{})
//	gate, err := approval.New(approval.Options{Audit: audit})
//	decision, err := gate.Decide(ctx, prompter, request)
//	if err != nil || !decision.Outcome.Allowed() {
//		// the command does not run
//	}
package approval
