// Hands for the extension: what a person sees of it in one window, and clicks.
import { until } from './workbench.mjs';

export const toolName = 'confine_runCommand';

export class Confine {
  constructor(window) {
    this.window = window;
    this.question = new QuestionPage(window);
    this.status = window.statusBar.locator('[id="confine-dev.confine.confine.status"]');
    this.calls = 0;
  }

  // ready resolves when the status bar tells what confines.
  ready() { return this.status.getByText(/landlock|bwrap/).waitFor(); }

  // run runs a command as a person does: from the palette, in the box that opens.
  async run(command) {
    await this.window.palette('Confine: Run a Command…');
    await this.window.input.getByText('Run a command in the sandbox').first().waitFor();
    await this.window.inputBox.fill(command);
    await this.window.page.keyboard.press('Enter');
  }

  // model calls the tool, as a language model would. .result resolves with what the model is told.
  model(command, more = {}) {
    const key = `call-${++this.calls}`;
    const result = this.window.ask('invoke', { name: toolName, key, input: { command, description: 'what a test wants', ...more } }).then((parts) => parts.join(''));
    result.catch(() => {}); // whoever waits hears of it
    return { result, cancel: () => this.window.ask('cancel', { key }) };
  }

  // wide lets a model ask for a command without any sandbox.
  wide(command, justification = 'the report goes beside the project') {
    return this.model(command, { sandbox_permissions: 'danger-full-access', justification });
  }

  // tidy refuses what still waits and clears the screen, whatever a chapter left.
  async tidy() {
    for (let n = 0; n < 20; n++) {
      await this.window.execute('workbench.action.closeAllEditors');
      if (!/^\s*\d+ ·/.test(await this.status.innerText())) break;
    }
    await this.window.execute('notifications.clearAll');
  }

  async openPanel() {
    await this.window.execute('confine.openPanel');
    await this.tree('Questions').waitFor();
  }

  // tree is one part of the panel; row is one row in it.
  tree(name) { return this.window.page.locator('.pane', { has: this.window.page.locator('.pane-header', { hasText: name }) }); }
  row(name, text) { return this.tree(name).locator('.monaco-list-row', { hasText: text }); }
}

// QuestionPage is the page that asks.
class QuestionPage {
  constructor(window) {
    this.window = window;
    this.tab = window.page.locator('.tab', { hasText: 'Confine: a question' });
    this.frame = window.page.frameLocator('iframe.webview').frameLocator('iframe#active-frame');
    this.command = this.frame.locator('#command pre');
    this.buttons = this.frame.locator('.buttons button');
    this.refuse = this.frame.locator('button[data-kind="reject_once"]').first();
    this.allow = this.frame.locator('button[data-kind="allow_once"]');
    this.allowSession = this.frame.locator('button[data-kind="allow_always"]');
    this.narrow = this.frame.locator('button.narrow');
    this.hint = this.frame.locator('#hint');
  }

  // drawn waits until a question that holds text is on the page, and answers count.
  async drawn(text) {
    await this.command.filter({ hasText: text }).waitFor();
    await until(async () => (await this.refuse.getAttribute('aria-disabled')) === 'false', 'answers count');
  }

  async gone() { await this.tab.waitFor({ state: 'detached' }); }
}
