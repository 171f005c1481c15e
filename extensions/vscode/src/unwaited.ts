// Work that nobody waits for. Pure.

/** Unwaited takes such work, and what it is for those who read the log. */
export type Unwaited = (what: string, work: PromiseLike<unknown>) => void;

/** unwaited writes what goes wrong to the log, where it would be lost otherwise. */
export function unwaited(log: { error: (text: string) => void }): Unwaited {
  return (what, work) => {
    work.then(undefined, (error: unknown) => log.error(`${what}: ${String(error)}`));
  };
}
