// Shows the question that waits, one at a time, in an editor of its own. It is
// a page and no notification: those cut text, make links of it and can be
// switched off; and unlike a dialog it can be taken back.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import * as vscode from 'vscode';
import { deliberate } from '../gate';
import type { FromPage, ShowQuestion } from '../page';
import type { Question } from '../protocol';
import type { Questions, Taken } from '../questions';
import type { Unwaited } from '../unwaited';
import { modes } from '../words';

/** What the person can choose besides the options of the question. */
export interface Narrower {
  words: (question: Question) => string | undefined; // of a smaller step, if there is one
  choose: (question: Question) => void; // refuses, and asks for that instead
}

// How long a page may take to appear before the person is asked in another way;
// and where none has appeared before.
const drawMs = 15000;
const undrawableMs = 2000;

export class QuestionPage implements vscode.Disposable {
  private panel: vscode.WebviewPanel | undefined;
  private shown: string | undefined; // id of the question on the page
  private undrawn: NodeJS.Timeout | undefined;
  private patience = drawMs;

  constructor(private readonly extensionUri: vscode.Uri, private readonly questions: Questions, private readonly unwaited: Unwaited, private readonly narrower: Narrower) {}

  /** update shows what is to be shown now. */
  update(): void {
    const question = this.questions.shown;
    if (!question) return this.close();
    const isNew = question.id !== this.shown;
    this.shown = question.id;
    if (!this.panel) this.open();
    this.send();
    if (!isNew) return;
    this.reveal();
    this.awaitDrawing(question);
  }

  /** reveal brings the page to the front. */
  reveal(): void {
    this.panel?.reveal(undefined, false);
  }

  dispose(): void {
    this.close();
  }

  private open(): void {
    const panel = vscode.window.createWebviewPanel('confine.question', 'Confine: a question', vscode.ViewColumn.Active, { enableScripts: true, localResourceRoots: [] });
    this.panel = panel;
    panel.iconPath = vscode.Uri.joinPath(this.extensionUri, 'media', 'icon.svg');
    panel.webview.onDidReceiveMessage((message: FromPage) => this.hear(message));
    // Closed by the person: no answer. Closed by us: this.panel is another one by then.
    panel.onDidDispose(() => {
      if (this.panel !== panel) return;
      const id = this.shown;
      this.panel = undefined;
      this.shown = undefined;
      if (id !== undefined) this.questions.dismiss(id);
    });
    panel.webview.html = page(this.extensionUri.fsPath);
  }

  private close(): void {
    clearTimeout(this.undrawn);
    const panel = this.panel;
    this.panel = undefined;
    this.shown = undefined;
    panel?.dispose();
  }

  private send(): void {
    const question = this.questions.shown;
    if (!question) return;
    const message: ShowQuestion = { type: 'show', question, waiting: this.questions.waiting.length, narrower: this.narrower.words(question), modes };
    if (this.panel) this.unwaited('showing a question', this.panel.webview.postMessage(message));
  }

  private hear(message: FromPage): void {
    switch (message.type) {
      case 'ready': return this.send();
      case 'drawn': return this.drawn(message.id);
      case 'answer': return this.tell(this.questions.answer(message.id, message.optionId));
      case 'dismiss': return this.tell(this.questions.dismiss(message.id));
      case 'narrow': {
        const question = this.questions.waiting.find((q) => q.id === message.id);
        if (question) this.narrower.choose(question);
        else this.tell('too-late');
      }
    }
  }

  private drawn(id: string): void {
    this.patience = drawMs;
    if (id === this.shown) clearTimeout(this.undrawn);
  }

  private awaitDrawing(question: Question): void {
    clearTimeout(this.undrawn);
    this.undrawn = setTimeout(() => this.unwaited('asking in a dialog', this.askPlainly(question)), this.patience);
  }

  // askPlainly asks in a dialog, for where no page can be drawn, such as a browser
  // without service workers. A dialog cannot be taken back, nor can it be known when
  // it is drawn and what of it is seen: it shows only what fits, an answer within half
  // a second of the request to show it is asked for again, and one to a question that
  // was withdrawn does nothing, and is told so.
  private async askPlainly(question: Question): Promise<void> {
    if (!this.panel || this.shown !== question.id) return;
    // Nobody looks, and a page that nobody sees is not drawn; the status bar shows that it waits.
    if (!this.panel.visible || !vscode.window.state.focused) {
      this.awaitDrawing(question);
      return;
    }
    this.patience = undrawableMs;
    if (question.unshown) {
      this.questions.dismiss(question.id);
      await vscode.window.showErrorMessage('confine could not show a question, so the command was not allowed. The page for it did not appear, and a dialog is too small for it. Reload the window and run the command again.');
      return;
    }
    const items = question.options.map((o) => ({ title: o.name, optionId: o.optionId }));
    const ask = () => vscode.window.showWarningMessage('confine asks', { modal: true, detail: question.text }, ...items);
    const waits = () => this.questions.waiting.some((q) => q.id === question.id);
    const picked = await deliberate(ask, waits, () => performance.now());
    if (picked) this.tell(this.questions.answer(question.id, picked.optionId));
    else this.questions.dismiss(question.id);
  }

  private tell(taken: Taken): void {
    if (taken === 'too-late') this.unwaited('telling', vscode.window.showWarningMessage('That question was withdrawn before you answered. Your answer did nothing.'));
  }
}

function page(extensionPath: string): string {
  const read = (name: string) => fs.readFileSync(path.join(extensionPath, 'dist', name), 'utf8');
  const nonce = randomBytes(18).toString('base64');
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'nonce-${nonce}'; script-src 'nonce-${nonce}'">
<title>A question</title>
<style nonce="${nonce}">${read('style.css')}</style>
</head>
<body>
<script nonce="${nonce}">${read('question.js')}</script>
</body>
</html>`;
}
