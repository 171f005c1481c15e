// Text that others wrote, made fit for the places where VS Code shows it.
// Questions come escaped from the server; commands, paths and errors do not.

// What cannot be seen, or changes how its neighbours are seen.
const invisible = /[\p{Cc}\p{Cf}\p{Cn}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const short: Record<string, string> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\x1b': '\\e' };

/** visible is text in one line in which everything can be seen. */
export function visible(text: string): string {
  return text.replace(invisible, (c) => short[c] ?? `\\u{${c.codePointAt(0)!.toString(16).toUpperCase()}}`);
}

/** cut is text, or its beginning and its end where it has more than max characters. */
export function cut(text: string, max: number): string {
  const points = Array.from(text);
  if (points.length <= max) return text;
  const head = Math.ceil((max - 1) * 0.7);
  return points.slice(0, head).join('') + '…' + points.slice(points.length - (max - 1 - head)).join('');
}

/** label is text for labels, in which VS Code would draw an icon for $(name). */
export function label(text: string, max = 120): string {
  return cut(visible(text), max).replaceAll('$(', '$\u200b(');
}

/** message is text for a notification, in which VS Code would make a button of [text](command:…). */
export function message(text: string, max = 400): string {
  return cut(visible(text), max).replaceAll('](', ']\u200b(');
}
