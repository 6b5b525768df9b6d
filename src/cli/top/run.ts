/** Runs `top` on a screen: keys and events go into the model, what it asks for is done, and what changed is drawn. */
import type { QueueEvent } from '../../client/follow';
import type { Session } from '../../contract/session';
import { own } from '../../job/own';
import { TocsinError } from '../../producer/errors';
import type { Screen } from '../output';
import type { Api } from './api';
import { notified, received } from './happen';
import { begin, type Effect, type Next, stay, type TopState } from './model';
import type { PagePlace } from './page';
import { type Change, perform, problemOf } from './perform';
import { press } from './press';
import { render } from './render';
import { painted } from './style';

const CONTROLS: Readonly<Record<string, string>> = {
  ...{ '\r': 'Enter', '\n': 'Enter', '\t': 'Tab', '\x7f': 'Backspace', '\b': 'Backspace', '\x1b': 'Escape' },
  ...{ '\x03': 'C-c', '\x0c': 'C-l', '\x15': 'C-u', '\x1a': 'C-z' },
};

/** By what follows the introducer of a sequence, of which terminals have two. */
const SEQUENCES: Readonly<Record<string, string>> = {
  ...{ A: 'Up', B: 'Down', C: 'Right', D: 'Left', H: 'Home', F: 'End', Z: 'BackTab' },
  ...{ '1~': 'Home', '4~': 'End', '5~': 'PageUp', '6~': 'PageDown' },
};

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what a terminal sends
const PIECES = /\x1b\[[0-9;?]*[ -/]*[@-~]|\x1bO[A-Za-z]|\x1b|[\x00-\x1f\x7f]|[^\x00-\x1f\x7f]/gu;

/** The keys in what the terminal has sent at once. Sequences that mean nothing here are left out. */
export const keysIn = (bytes: string): string[] =>
  [...bytes.matchAll(PIECES)].flatMap(([piece]) => {
    const name = own(CONTROLS, piece) ?? own(SEQUENCES, piece.slice(2));
    if (name !== undefined) return [name];
    return piece < ' ' ? [] : [piece];
  });

/** Events of this time are sent together, in ms. */
const BATCH_MS = 800;

/** Interval at which ages are redrawn, in ms. No request is sent for that. */
const TICK_MS = 1_000;

/** Minimum interval between two drawings, in ms. */
const FRAME_MS = 30;

export interface TopOptions {
  api: Api;
  session: Session;
  place: PagePlace | undefined;
  url: string;
  screen: Screen;
  color: boolean;
  /** Epoch ms. */
  now(): number;
}

/** @returns the exit code, once the user has quit @throws what is a defect */
export async function runTop({ api, session, place, url, screen, color, now }: TopOptions): Promise<number> {
  let drawn: string[] = [];
  let state: TopState;
  const waiting: QueueEvent[] = [];
  const timers = new Map<'frame' | 'batch', NodeJS.Timeout>();
  let end: (exitCode: number) => void = () => undefined;
  let crash: (error: unknown) => void = () => undefined;
  const ended = new Promise<number>((resolve, reject) => {
    end = resolve;
    crash = reject;
  });

  /** Later, once, however often it is asked for until then. */
  const soon = (what: 'frame' | 'batch', ms: number, work: () => void) => {
    if (timers.has(what)) return;
    const later = () => {
      timers.delete(what);
      work();
    };
    timers.set(what, setTimeout(later, ms));
  };

  const draw = () => {
    const size = { width: screen.columns(), height: screen.rows(), url };
    const lines = render(state, size, now()).map((line) => painted(line, color));
    const changed = lines.flatMap((line, row) => (line === drawn[row] ? [] : [`\x1b[${row + 1};1H\x1b[2K${line}`]));
    drawn = lines;
    // Between these a terminal shows nothing of it yet, so that nothing flickers.
    if (changed.length > 0) screen.write(`\x1b[?2026h${changed.join('')}\x1b[?2026l`);
  };
  const apply = ({ state: next, effects }: Next) => {
    state = next;
    for (const effect of effects) start(effect);
    soon('frame', FRAME_MS, draw);
  };
  const change: Change = (one) => apply(one(state));
  const start = (effect: Effect) => {
    if (effect.do === 'quit') end(0);
    else if (effect.do === 'clear') redraw();
    else if (effect.do === 'suspend') screen.suspend();
    else perform(effect, api, url, change).catch(crash);
  };
  const redraw = () => {
    drawn = [];
    screen.write('\x1b[2J');
    draw();
  };

  const first = begin(session, place);
  state = first.state;
  const giveBack = screen.take({
    typed: (bytes) => {
      for (const key of keysIn(bytes)) apply(press(state, key, now()));
    },
    redraw,
    stop: end,
  });
  const ticking = setInterval(draw, TICK_MS);
  try {
    apply(first);
    const event = (one: QueueEvent) => {
      waiting.push(one);
      soon('batch', BATCH_MS, () => apply(received(state, waiting.splice(0))));
    };
    follow(api, url, change, event).catch(crash);
    return await ended;
  } finally {
    clearInterval(ticking);
    for (const timer of timers.values()) clearTimeout(timer);
    giveBack();
  }
}

/** Follows all that happens. Where that is refused, the page says so and stays as it is loaded. */
async function follow(api: Api, url: string, change: Change, event: (one: QueueEvent) => void): Promise<void> {
  const connected = (connection: TopState['connection']) => change((state) => stay({ ...state, connection }));
  try {
    for await (const one of api.follow((error) => connected(error ? 'lost' : 'live'))) event(one);
  } catch (error) {
    if (!(error instanceof TocsinError)) throw error;
    if (error.code === 'aborted') return;
    connected('refused');
    change((state) => notified(state, `Not live: ${problemOf(error, url).message}`, 'warn'));
  }
}
