// The settings of this extension. All are the person's own: the value that a
// workspace or folder gives is never read, whatever their scope says.
import * as vscode from 'vscode';

/** Settings of the server that can be set here, by their names in its settings file. */
export const serverKeys = {
  sandboxMode: 'sandbox_mode',
  networkAccess: 'network_access',
  writableRoots: 'writable_roots',
  denyRead: 'deny_read',
  approvalPolicy: 'approval_policy',
  provider: 'provider',
} as const;

function own(key: string): unknown {
  return vscode.workspace.getConfiguration('confine').inspect(key)?.globalValue;
}

/** serverPath is the program that the person named, or empty. */
export function serverPath(): string {
  const value = own('serverPath');
  return typeof value === 'string' ? value.trim() : '';
}

/** serverSettings are what the server gets as initializationOptions: what the person set here, and nothing else. */
export function serverSettings(): Record<string, unknown> {
  const settings: Record<string, unknown> = {};
  for (const [key, name] of Object.entries(serverKeys)) {
    const value = own(key);
    if (value !== undefined && value !== null && value !== '') settings[name] = value;
  }
  return settings;
}

/** ownSettings is all of them as one text: a workspace that sets ours must not restart the server. */
export function ownSettings(): string {
  return JSON.stringify([serverPath(), serverSettings()]);
}
