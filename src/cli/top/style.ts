/** Colours and weights, by what they mean. Nothing is shown by colour alone. */

export type Tone = 'plain' | 'faint' | 'strong' | 'good' | 'bad' | 'warn' | 'busy' | 'calm' | 'chosen';

const CODES: Record<Exclude<Tone, 'plain'>, string> = {
  faint: '2',
  strong: '1',
  good: '32',
  bad: '31',
  warn: '33',
  busy: '35',
  calm: '36',
  chosen: '7',
};

/** Text alone, as it goes into a file. */
export const bare = (line: readonly Span[]): string => line.map(({ text }) => text).join('');

/** Without colour these remain: they are not colours. */
const WEIGHTS: ReadonlySet<Tone> = new Set(['strong', 'chosen']);

export interface Span {
  text: string;
  tone: Tone;
}

export const plain = (text: string): Span => ({ text, tone: 'plain' });

/** The line as the terminal reads it. @param color false: `NO_COLOR` is set */
export function painted(line: readonly Span[], color: boolean): string {
  const piece = ({ text, tone }: Span) =>
    tone === 'plain' || (!color && !WEIGHTS.has(tone)) ? text : `\x1b[${CODES[tone]}m${text}\x1b[0m`;
  return line.map(piece).join('');
}

const STATES: readonly (readonly [tone: Tone, states: RegExp])[] = [
  ['busy', /^(active|running)$/],
  ['calm', /^available$/],
  ['good', /^(completed|delivered|up)$/],
  ['bad', /^(discarded|failed|dead|stopped|firing)$/],
  ['warn', /^(retryable|paused|draining|stale|quiet)$/],
  ['faint', /^(cancelled|off)$/],
];

export const toneOf = (state: string): Tone => STATES.find(([, states]) => states.test(state))?.[0] ?? 'plain';
