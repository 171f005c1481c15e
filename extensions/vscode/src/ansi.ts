// What a command printed, for the terminal of VS Code. Pure.
//
// A terminal obeys what is printed to it: text can rename it, write to the
// clipboard, forge what the shell integration reports, or make the terminal
// answer as if somebody had typed. Colours pass, and of a command that has a
// terminal of its own also what moves the cursor.

// The longest sequence that is kept whole; a longer one is no honest one.
const longest = 256;

// The longest control string, such as a title or a picture, that is left out. A
// longer one has probably no end, and would hide everything behind it.
const longestString = 64 * 1024;

/** Printed filters one stream. It gives whole sequences only, so that streams can be mixed. */
export class Printed {
  private readonly decoder = new TextDecoder();
  private pending = ''; // the beginning of a sequence
  private inString = 0; // within an operating system command or the like: one more than its characters so far

  /** @param terminal whether the command itself has a terminal, which ends lines by itself */
  constructor(private readonly terminal: boolean) {}

  /** push is what to write to the terminal for some more bytes. */
  push(bytes: Uint8Array): string {
    let out = '';
    for (const c of this.decoder.decode(bytes, { stream: true })) out += this.character(c);
    return out;
  }

  private character(c: string): string {
    if (this.inString > 0) return this.string(c);
    if (this.pending) return this.sequence(c);
    switch (c) {
      case '\x1b': this.pending = c; return '';
      case '\x9b': this.pending = '\x1b['; return '';
      case '\x90': case '\x98': case '\x9d': case '\x9e': case '\x9f': this.inString = 1; return '';
      case '\n': return this.terminal ? c : '\r\n';
      case '\t': case '\r': case '\b': return c;
      case '\x07': return this.terminal ? c : '';
      default: return c < ' ' || (c >= '\x7f' && c <= '\x9f') ? '' : c;
    }
  }

  // A control string ends with BEL, ST, or ESC, whatever follows the ESC; and with
  // its line, since what never ends would hide what comes after it.
  private string(c: string): string {
    const length = this.inString++;
    const tooLong = length > longestString;
    if (!tooLong && !'\x07\x18\x1a\x1b\x9c\r\n'.includes(c)) return '';
    this.inString = 0;
    if (tooLong) return `[confine: ${longestString} characters of a control string are not shown]${this.character(c)}`;
    return '\x1b\r\n'.includes(c) ? this.character(c) : '';
  }

  private sequence(c: string): string {
    if (c === '\x18' || c === '\x1a') return this.drop();
    if (c === '\x1b') {
      this.pending = c;
      return '';
    }
    if (c < ' ') return this.drop() + this.character(c); // a line's end is never swallowed
    const sequence = this.pending + c;
    if (sequence.length > longest) return this.drop();
    if (this.pending === '\x1b') {
      if (c === '[' || (c >= ' ' && c <= '/')) this.pending = sequence;
      else {
        this.pending = '';
        if ('PX]^_'.includes(c)) this.inString = 1;
        else if (this.terminal && c !== '\\') return sequence; // ESC \ ends a string, and there is none
      }
      return '';
    }
    const csi = sequence.startsWith('\x1b[');
    const final = csi ? c >= '@' && c <= '~' : c >= '0' && c <= '~';
    if (!final) {
      this.pending = sequence;
      return '';
    }
    this.pending = '';
    if (!csi) return this.terminal ? sequence : '';
    if (/^\x1b\[[\d;:]*m$|^\x1b\[[012]?K$/.test(sequence)) return sequence;
    // t asks about and moves the window; the rest moves the cursor and the like.
    return this.terminal && c !== 't' ? sequence : '';
  }

  private drop(): string {
    this.pending = '';
    return '';
  }
}
