// What a command printed, for the terminal of VS Code. Pure.
//
// A terminal obeys what is printed to it: text can rename it, write to the
// clipboard, forge what the shell integration reports, or make the terminal
// answer as if somebody had typed. Colours pass, and of a command that has a
// terminal of its own also what moves the cursor.

// The longest sequence that is kept whole; a longer one is no honest one.
const longest = 256;

/** Printed filters one stream. It gives whole sequences only, so that streams can be mixed. */
export class Printed {
  private readonly decoder = new TextDecoder();
  private pending = ''; // the beginning of a sequence
  private inString = false; // within an operating system command or the like

  /** @param terminal whether the command itself has a terminal, which ends lines by itself */
  constructor(private readonly terminal: boolean) {}

  /** push is what to write to the terminal for some more bytes. */
  push(bytes: Uint8Array): string {
    let out = '';
    for (const c of this.decoder.decode(bytes, { stream: true })) out += this.character(c);
    return out;
  }

  private character(c: string): string {
    if (this.inString) {
      // Ends with BEL, ST, or ESC, whatever follows the ESC.
      if (c === '\x07' || c === '\x9c' || c === '\x18' || c === '\x1a') this.inString = false;
      else if (c === '\x1b') {
        this.inString = false;
        this.pending = c;
      }
      return '';
    }
    if (this.pending) return this.sequence(c);
    switch (c) {
      case '\x1b': this.pending = c; return '';
      case '\x9b': this.pending = '\x1b['; return '';
      case '\x90': case '\x98': case '\x9d': case '\x9e': case '\x9f': this.inString = true; return '';
      case '\n': return this.terminal ? c : '\r\n';
      case '\t': case '\r': case '\b': return c;
      case '\x07': return this.terminal ? c : '';
      default: return c < ' ' || (c >= '\x7f' && c <= '\x9f') ? '' : c;
    }
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
        if ('PX]^_'.includes(c)) this.inString = true;
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
