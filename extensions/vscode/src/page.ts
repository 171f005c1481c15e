// What the extension and the page that shows a question tell each other.
import type { Question } from './protocol';

/** To the page. */
export interface ShowQuestion {
  type: 'show';
  question: Question;
  waiting: number; // how many wait, this one included
  narrower: string | undefined; // a smaller step that could be asked for instead, in words
  modes: Record<string, string>; // what each mode means
}

/** From the page. Whether an answer counts is decided by the extension and then by the server. */
export type FromPage =
  | { type: 'ready' } // and wants to be told what to show
  | { type: 'drawn'; id: string }
  | { type: 'answer'; id: string; optionId: string }
  | { type: 'narrow'; id: string }
  | { type: 'dismiss'; id: string };
