// The doctor's page and the diagnostics: what the server reports, as text. Pure.
import type { Capabilities, Facet, Report } from './protocol';
import { facets, facetStates, standing } from './words';
import { visible } from './text';

/** Whom the report is about. */
export interface Subject {
  extension: string; // versions and the like, a line each
  program: string;
  state: string;
  problem: string;
}

/** report is everything that the server says about this machine and its settings. */
export function report(subject: Subject, capabilities: Capabilities | undefined): string {
  const lines = [subject.extension, `Server: ${subject.program}`, `State: ${subject.state}`];
  if (subject.problem) lines.push(...subject.problem.split('\n').map(visible));
  if (capabilities) lines.push('', ...sandbox(capabilities));
  return lines.join('\n') + '\n';
}

function sandbox(c: Capabilities): string[] {
  const settings = c.settings.filter((s) => s.value !== null);
  const width = Math.max(...settings.map((s) => s.key.length));
  return [
    standing(c),
    ...part('Problems', c.problems),
    ...part('Hints', c.hints),
    ...part('Settings that count for nothing or are wrong', c.settingsProblems.map((p) => `${p.severity}: ${p.message}`)),
    ...part('Workspace folders that commands may write to in workspace-write', c.roots),
    ...part('Folders that are not used', c.refusedRoots.map((r) => `${r.uri}: ${r.reason}`)),
    ...c.providers.flatMap(provider),
    ...part('Settings', settings.map((s) => `${s.key.padEnd(width)}  ${JSON.stringify(s.value)}  (${s.origin})`)),
  ];
}

function provider(r: Report): string[] {
  const rows = Object.keys(facets).flatMap((facet) => {
    const f = r.facets?.[facet as Facet];
    return f ? [`${facets[facet as Facet]}: ${facetStates[f.state]}${f.reason ? `; ${f.reason}` : ''}`] : [];
  });
  return part(`${r.provider}: ${r.usable ? 'can be used' : `cannot be used; ${r.reason ?? ''}`}`, [...rows, ...(r.remedies ?? [])], true);
}

function part(title: string, lines: readonly string[], always = false): string[] {
  return lines.length > 0 || always ? ['', visible(title), ...lines.map((line) => `  ${visible(line)}`)] : [];
}
