package server

import (
	"github.com/confine-dev/confine/approval"
	"github.com/confine-dev/confine/rpc/proto"
	"github.com/confine-dev/confine/sandbox"
)

// What an agent is taught about the tool. The mode in force is never named:
// models that are told of a read-only sandbox refuse without trying.
const (
	toolDescription = `Runs a command with bash and returns what it printed.

Each call is a new shell: directories, variables and functions of an earlier call are gone. Give the directory in workdir instead of beginning with cd.
A command that fails ends with a line [exit code: N] or [killed by signal: X]; look for it after every call. Without such a line it succeeded.
A line that begins with [sandbox: says that the sandbox, not the command, decided: "file access denied" is a policy and not a bug in the command. Do not try to get round it with another path, another tool or a disguised command.
Long output is cut to its end, and the line that says so names a file with all of it: search that file instead of running the command again.
Set run_in_background for servers and watchers; the answer names the run, whose output is read later.`

	untrustedDescription = `

The user is asked about each command before it runs, unless it only reads and prints or their rules allow it. So keep a command short and to one purpose, and do not chain what needs no question with what does. A refusal is final for that command: do not ask for the same in other words.`

	unaskedDescription = `

Nobody can be asked here, so a command is refused unless it only reads and prints or the user's rules allow it.`

	escalationDescription = `

When a call was denied and the task needs what was denied, repeat exactly that command once, in the same turn, with sandbox_permissions and justification. The user is asked; trying is safe, and there is no need to ask in the conversation first. Choose the narrowest mode that suffices: workspace-write to change files of the project, danger-full-access only for what nothing narrower allows. The justification is one sentence that tells the user why.
Do not ask before a denial, unless this conversation has already seen the same access denied. A refusal is final for that command: do not ask again in other words. It says nothing about other commands. If you are told that prompts are switched off, do not escalate at all.`
)

// askable are the modes that an agent may ask for: none if nobody can be asked.
func (s *Settings) askable(canAsk bool) []sandbox.Mode {
	switch {
	case !canAsk || !s.Mode.Confined():
		return nil
	case s.Elsewhere:
		return []sandbox.Mode{sandbox.WorkspaceWrite} // what is wider runs commands here
	}
	return []sandbox.Mode{sandbox.WorkspaceWrite, sandbox.DangerFullAccess}
}

// shellTool describes the tool under some settings. Fields to ask for more are in it
// only if that can be granted.
func shellTool(s *Settings, canAsk bool) proto.Tool {
	tool := proto.Tool{Name: "bash", Description: toolDescription}
	switch untrusted := s.ApprovalPolicy == approval.PolicyUntrusted; {
	case untrusted && canAsk:
		tool.Description += untrustedDescription
	case untrusted:
		tool.Description += unaskedDescription
	}
	properties := map[string]any{}
	add := func(name, field string, schema map[string]any) {
		properties[name] = schema
		tool.Arguments = append(tool.Arguments, proto.ToolArgument{Name: name, Field: field})
	}
	add("command", "command", typed("string", "The command line, as typed into bash."))
	add("description", "", typed("string", "What the command does, in five to ten words, for the user."))
	add("workdir", "cwd", typed("string", "Directory to run in, as an absolute path. Default: the workspace folder."))
	add("timeoutMs", "timeoutMs", typed("integer", "Milliseconds until the command is ended. Default 120000, at most 600000."))
	add("run_in_background", "background", typed("boolean", "Answer at once and let the command go on."))
	if modes := s.askable(canAsk); len(modes) > 0 {
		tool.Description += escalationDescription
		permissions := typed("string", "Mode to ask the user for, for this call only.")
		permissions["enum"] = modes
		add("sandbox_permissions", "sandboxPermissions", permissions)
		add("justification", "justification", typed("string", "One sentence for the user: why this command needs it. Required with sandbox_permissions."))
	}
	tool.InputSchema = map[string]any{
		"type":                 "object",
		"properties":           properties,
		"required":             []string{"command", "description"},
		"additionalProperties": false,
	}
	return tool
}

func typed(kind, description string) map[string]any {
	return map[string]any{"type": kind, "description": description}
}
