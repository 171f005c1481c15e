// The workspace folders in which a command can run: those of the machine on which this runs.
import * as vscode from 'vscode';
import { label } from './text';

const local = ({ uri }: vscode.WorkspaceFolder): boolean => uri.scheme === 'file';

/** localFolders are their paths. */
export function localFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? []).filter(local).map((f) => f.uri.fsPath);
}

/** severalFolders says that a command has to name its folder; of a single one the server knows. */
export function severalFolders(): boolean {
  return (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
}

/** likelyFolder is the one of several in which somebody works, or the only one in which a command can run. */
export function likelyFolder(): string | undefined {
  const document = vscode.window.activeTextEditor?.document.uri;
  const folder = document && vscode.workspace.getWorkspaceFolder(document);
  if (folder && local(folder)) return folder.uri.fsPath;
  const folders = localFolders();
  return folders.length === 1 ? folders[0] : undefined;
}

/** modelFolder is the folder for a model's command that names none. */
export function modelFolder(): string | undefined {
  return severalFolders() ? (likelyFolder() ?? localFolders()[0]) : undefined;
}

/** pickFolder lets the person choose. */
export async function pickFolder(): Promise<string | undefined> {
  const items = localFolders().map((folder) => ({ label: label(folder), folder }));
  return (await vscode.window.showQuickPick(items, { placeHolder: 'Run in which folder?' }))?.folder;
}
