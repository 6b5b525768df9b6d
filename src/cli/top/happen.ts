import type { QueueEvent } from '../../client/follow';
import { questionOf, type Wish } from './actions';
import { type Effect, type Next, type Problem, stay, type TopState } from './model';
import { numberText } from './page';
import { pageOf } from './pages/table';
import type { Tone } from './style';

/** Events that are held while live updates are paused; with more the page is reloaded. */
const HELD = 2_000;

/** The answer of the page, or how it has changed. A late one of a place that was left is not looked at. */
export function arrived(state: TopState, serial: number, change: (answer: unknown) => unknown, isWhole: boolean): Next {
  if (serial !== state.serial) return stay(state);
  const answer = isWhole || state.answer !== undefined ? change(state.answer) : undefined;
  return goOn({ ...state, answer, problem: undefined, isBusy: false, ...(isWhole && { newer: 0 }) });
}

/** The page could not be loaded. What is shown of it stays, beside why it is old. */
export function failed(state: TopState, serial: number, problem: Problem): Next {
  if (serial !== state.serial) return stay(state);
  return stay({ ...state, problem, isBusy: false, due: { reload: false, names: [] } });
}

function goOn(state: TopState): Next {
  const { due, isBusy, place, serial } = state;
  if (isBusy || (!due.reload && due.names.length === 0)) return stay(state);
  const effect: Effect = due.reload ? { do: 'load', place, serial } : { do: 'ask', names: due.names, place, serial };
  return { state: { ...state, isBusy: true, due: { reload: false, names: [] } }, effects: [effect] };
}

/** Events of a short time, oldest first. */
export function received(state: TopState, events: readonly QueueEvent[]): Next {
  if (state.isPaused) return stay({ ...state, held: [...state.held, ...events].slice(0, HELD + 1) });
  // Before the page is there it has nothing that could be old.
  if (state.answer === undefined) return stay({ ...state, due: { ...state.due, reload: state.isBusy } });
  const page = pageOf(state.place.page);
  const isGap = events.some(({ type }) => type.startsWith('system.'));
  const fresh = events.filter(({ type }) => !type.startsWith('system.'));
  const change = page.receive?.(state.answer, fresh, state.place) ?? {};
  const names = [...new Set([...state.due.names, ...(change.ask ?? [])])];
  const reload = state.due.reload || change.reload === true || (isGap && page.receive !== undefined);
  const answer = change.answer ?? state.answer;
  return goOn({ ...state, answer, newer: state.newer + (change.newer ?? 0), due: { reload, names } });
}

/** Live updates resume: held events are applied. */
export function awaken(state: TopState): Next {
  const { held } = state;
  if (held.length <= HELD)
    return held.length > 0 ? received({ ...state, held: [] }, held) : stay({ ...state, held: [] });
  return goOn({ ...state, held: [], due: { ...state.due, reload: true } });
}

export function counted(state: TopState, wish: Wish, matched: number, isExact: boolean): Next {
  if (matched === 0 && isExact) return stay({ ...state, notice: { text: 'No job would change.', tone: 'warn' } });
  const question = questionOf(wish, `${isExact ? '' : 'at least '}${numberText(matched)}`);
  return stay({ ...state, notice: undefined, mode: { kind: 'ask', wish, question } });
}

/** Shows a notice. @param isChange the page is out of date because of it */
export function notified(state: TopState, text: string, tone: Tone, isChange = false): Next {
  const next: TopState = { ...state, notice: { text, tone } };
  if (!isChange) return stay(next);
  return goOn({ ...next, selected: new Set(), isAll: false, due: { ...next.due, reload: true } });
}
