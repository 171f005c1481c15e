// The language-model tool: how what a model sends becomes a request. Pure.
import type { RunCommandParams, Tool } from './protocol';

/** The name under which VS Code knows the tool; in package.json, too. */
export const toolName = 'confine_runCommand';

/** A request, and what the model says of it. */
export interface Call {
  command: string;
  cwd: string | undefined;
  purpose: string;
  params: Pick<RunCommandParams, 'timeoutMs' | 'background' | 'sandboxPermissions' | 'justification'>;
}

// The fields of a request that a model can fill. What the server lets a model
// send beyond these, this client does not pass on.
const fields = ['command', 'cwd', 'timeoutMs', 'background', 'sandboxPermissions', 'justification'] as const;

/** call maps the arguments of the tool as the server says. Arguments that it does not name count for nothing. */
export function call(tool: Tool, input: Record<string, unknown>): Call {
  const params: Partial<Record<(typeof fields)[number], unknown>> = {};
  let purpose = '';
  for (const { name, field } of tool.arguments) {
    const value = input[name];
    if (value === undefined || value === null) continue;
    if (!field) purpose ||= typeof value === 'string' ? value : '';
    const known = fields.find((f) => f === field);
    if (known) params[known] = value;
  }
  const { command, cwd, ...rest } = params;
  if (typeof command !== 'string' || command === '') throw new Error('A command is needed, as a text.');
  if (cwd !== undefined && typeof cwd !== 'string') throw new Error('The folder to run in must be a text.');
  // The types of the rest are the server's to check; it says what is wrong.
  return { command, cwd: cwd || undefined, purpose, params: rest as Call['params'] };
}
