// The page that shows one question. It shows what it is told, as text and never
// as markup, and tells which button was pressed.
import type { FromPage, ShowQuestion } from '../page';
import type { Additional, Denial, Option } from '../protocol';
import { Gate, isYes } from '../gate';

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void };
const host = acquireVsCodeApi();

let shown: { id: string; gate: Gate; refresh: () => void } | undefined;
let pressed: boolean | undefined; // whether an answer counted when the button went down

window.addEventListener('message', (event: MessageEvent<ShowQuestion>) => show(event.data));
// Nothing was drawn while the page was hidden.
document.addEventListener('visibilitychange', () => document.visibilityState === 'visible' && arm());
window.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && shown?.gate.refuse && !event.repeat) host.postMessage({ type: 'dismiss', id: shown.id });
});
host.postMessage({ type: 'ready' });

function show(message: ShowQuestion): void {
  if (shown?.id === message.question.id) return drawCount(message);
  draw(message);
}

function draw(message: ShowQuestion): void {
  const { question } = message;
  const gate = new Gate(() => performance.now());
  const title = element('h1', question.title);
  title.tabIndex = -1;
  title.id = 'title';
  const end = element('div');
  end.id = 'end';

  const body = element('main');
  body.tabIndex = 0; // so that keys scroll it
  body.setAttribute('aria-label', 'What is asked');
  body.append(element('p', ''), title);
  body.firstElementChild!.id = 'count';
  if (question.warnings.length > 0) body.append(list('warnings', 'A yes means', question.warnings));
  body.append(code('command', question.kind === 'escalation' ? 'Command, which runs again' : 'Command', question.command));
  body.append(words('cwd', 'In folder', question.cwd));
  if (question.stdin) body.append(code('stdin', 'Input', question.stdin));
  if (question.env?.length) body.append(list('env', 'With variables', question.env, 'code'));
  const grants = additions(question.wanted.additional);
  if (grants.length > 0) body.append(list('grants', 'Opens', grants, 'code'));
  body.append(end);
  if (question.justification) body.append(words('justification', 'Whoever asks says (not checked)', question.justification));
  body.append(words('reason', 'Why you are asked', question.reason));
  if (question.evidence.length > 0) body.append(list('evidence', 'The sandbox refused', question.evidence.map(refusal), 'code'));
  body.append(words('mode', 'Configured', `${question.mode}: ${message.modes[question.mode] ?? ''}`));
  if (question.wanted.mode && question.wanted.mode !== question.mode) body.append(words('wanted', 'Wanted', `${question.wanted.mode}: ${message.modes[question.wanted.mode] ?? ''}`));
  body.append(words('expires', 'Without an answer it is refused', `at ${new Date(question.expiresAt).toLocaleTimeString()}`));

  const buttons = question.options.map((option) => answer(option, gate));
  if (message.narrower !== undefined) buttons.splice(1, 0, narrow(gate));
  const hint = element('p');
  hint.id = 'hint';
  hint.setAttribute('role', 'status');
  const footer = element('footer');
  const row = element('div');
  row.className = 'buttons';
  row.append(...buttons.map((b) => b.button));
  if (message.narrower !== undefined) {
    const smaller = element('p', 'A smaller step would do: ' + message.narrower + '.');
    smaller.id = 'narrower';
    footer.append(smaller);
  }
  footer.append(row, hint);
  const dialog = element('div');
  dialog.id = 'dialog';
  dialog.setAttribute('role', 'alertdialog');
  dialog.setAttribute('aria-labelledby', 'title');
  dialog.append(body, footer);
  document.body.replaceChildren(dialog);

  const refresh = () => {
    for (const { button, counts } of buttons) button.setAttribute('aria-disabled', String(!counts()));
    hint.textContent = gate.unread ? 'To allow it, scroll to the end of what would run.' : 'Escape closes the question without an answer, which is no yes.';
  };
  shown = { id: question.id, gate, refresh };
  refresh();
  // The end counts as seen within the part that scrolls, of which nothing covers any.
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((e) => e.isIntersecting)) return;
    observer.disconnect();
    gate.read();
    refresh();
  }, { root: body }).observe(end);
  drawCount(message);
  title.focus(); // so that Enter and Space mean nothing, and readers begin here
  arm();
}

// arm lets answers count half a second after the next picture is on the screen.
function arm(): void {
  const current = shown;
  if (!current) return;
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (shown !== current || document.visibilityState !== 'visible') return;
    current.gate.drawn();
    current.refresh();
    host.postMessage({ type: 'drawn', id: current.id });
    setTimeout(() => shown === current && current.refresh(), current.gate.guardMs + 10);
  }));
}

function drawCount({ waiting }: ShowQuestion): void {
  document.getElementById('count')!.textContent = waiting > 1 ? `confine asks. ${waiting - 1} more ${waiting === 2 ? 'question waits' : 'questions wait'}.` : 'confine asks.';
}

interface Button {
  button: HTMLButtonElement;
  counts: () => boolean;
}

function answer(option: Option, gate: Gate): Button {
  const allows = isYes(option);
  const made = makeButton(option.name, () => (allows ? gate.allow : gate.refuse), (id) => ({ type: 'answer', id, optionId: option.optionId }));
  made.button.className = allows ? 'allow' : 'refuse';
  if (allows) made.button.setAttribute('aria-describedby', 'hint'); // which says why it does not count yet
  made.button.dataset['optionId'] = option.optionId;
  made.button.dataset['kind'] = option.kind;
  return made;
}

function narrow(gate: Gate): Button {
  const made = makeButton('Refuse, and ask for the smaller step', () => gate.refuse, (id) => ({ type: 'narrow', id }));
  made.button.className = 'narrow';
  return made;
}

function makeButton(name: string, counts: () => boolean, message: (id: string) => FromPage): Button {
  const button = element('button', name);
  // A button that is held down before it counts does not count when it is let go.
  button.addEventListener('pointerdown', () => (pressed = counts()));
  button.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' && event.key !== ' ') return;
    if (event.repeat || !counts()) event.preventDefault();
    if (!event.repeat) pressed = counts();
  });
  button.addEventListener('click', (event) => {
    const counted = event.isTrusted && (pressed ?? true) && counts();
    pressed = undefined;
    if (counted && shown) host.postMessage(message(shown.id));
  });
  return { button, counts };
}

function additions(additional: Additional | undefined): string[] {
  return [
    ...(additional?.write ?? []).map((p) => `write ${p}`),
    ...(additional?.read ?? []).map((p) => `read ${p}`),
    ...(additional?.network ? ['network'] : []),
  ];
}

function refusal(denial: Denial): string {
  return [denial.op, denial.path ?? denial.address ?? '', denial.errno ? `(${denial.errno})` : '', denial.exe ? `by ${denial.exe}` : '', denial.count > 1 ? `× ${denial.count}` : ''].filter(Boolean).join(' ');
}

function element<K extends keyof HTMLElementTagNameMap>(tag: K, text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

function section(id: string, heading: string): HTMLElement {
  const made = element('section');
  made.id = id;
  made.append(element('h2', heading));
  return made;
}

function code(id: string, heading: string, text: string): HTMLElement {
  const made = section(id, heading);
  made.append(element('pre', text));
  return made;
}

function words(id: string, heading: string, text: string): HTMLElement {
  const made = section(id, heading);
  made.append(element('p', text));
  return made;
}

function list(id: string, heading: string, texts: readonly string[], style = ''): HTMLElement {
  const made = section(id, heading);
  const items = element('ul');
  items.className = style;
  items.append(...texts.map((text) => element('li', text)));
  made.append(items);
  return made;
}
