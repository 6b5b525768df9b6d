import { own } from '../../job/own';
import { isAtOnce, isCounted, questionOf, type Wish, wishText } from './actions';
import { awaken } from './happen';
import { arrive, type Next, offersOf, stay, type TopState, tabOf, tabsOf, viewOf } from './model';
import { PER_PAGE } from './page';
import { pageOf } from './pages/table';
import { foreign } from './text';

const LEAP = 10;
const LONGEST_SEARCH = 200;

/** @param key as keys.ts names it @param now epoch ms */
export function press(before: TopState, key: string, now: number): Next {
  if (key === 'C-c') return { state: before, effects: [{ do: 'quit' }] };
  if (key === 'C-z') return { state: before, effects: [{ do: 'suspend' }] };
  if (key === 'C-l') return { state: before, effects: [{ do: 'clear' }] };
  const { mode } = before;
  if (mode.kind === 'search') return search(before, mode.text, key);
  // The notice has been read.
  const state: TopState = { ...before, notice: undefined };
  if (mode.kind === 'help') return stay({ ...state, mode: { kind: 'browse' } });
  if (mode.kind === 'ask') {
    const asked: TopState = { ...state, mode: { kind: 'browse' } };
    if (key === 'y' || key === 'Y') {
      const notice = { text: `${wishText(mode.wish)} …`, tone: 'plain' } as const;
      return { state: { ...asked, notice }, effects: [{ do: 'act', wish: mode.wish }] };
    }
    return stay({ ...asked, notice: { text: 'Nothing was changed.', tone: 'faint' } });
  }
  if (state.isGoing) return go({ ...state, isGoing: false }, key);
  return browse(state, key, now);
}

const KEYS: Readonly<Record<string, (state: TopState, now: number) => Next>> = {
  q: (state) => (state.back.length > 0 ? back(state) : { state, effects: [{ do: 'quit' }] }),
  g: (state) => stay({ ...state, isGoing: true }),
  '?': (state) => stay({ ...state, mode: { kind: 'help' } }),
  '/': (state) => stay({ ...state, mode: { kind: 'search', text: state.place.q ?? '' } }),
  '.': (state) => (state.isPaused ? awaken({ ...state, isPaused: false }) : stay({ ...state, isPaused: true })),
  u: reload,
  s: nextState,
  ']': (state, now) => turn(state, 1, now),
  '[': (state, now) => turn(state, -1, now),
  Tab: (state) => tab(state, 1),
  Right: (state) => tab(state, 1),
  BackTab: (state) => tab(state, -1),
  Left: (state) => tab(state, -1),
  A: (state) => stay({ ...state, isAll: !state.isAll, selected: new Set() }),
  x: select,
  Enter: open,
  Escape: leave,
};

function browse(state: TopState, key: string, now: number): Next {
  const does = own(KEYS, key);
  if (does) return does(state, now);
  const by = own(MOVES, key);
  if (by !== undefined) return move(state, by, now);
  const wish = offersOf(state, now).find(({ action }) => action.key === key);
  return wish ? wanted(state, wish) : stay(state);
}

const MOVES: Readonly<Record<string, number>> = {
  ...{ j: 1, Down: 1, k: -1, Up: -1, PageDown: LEAP, PageUp: -LEAP },
  ...{ Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY },
};

function move(state: TopState, by: number, now: number): Next {
  const { rows, index } = viewOf(state, now);
  const to = Math.max(0, Math.min(rows.length - 1, index + by));
  return stay({ ...state, row: rows[to]?.id, index: to });
}

function select(state: TopState, now: number): Next {
  const { rows, index } = viewOf(state, now);
  const id = rows[index]?.id;
  if (id === undefined || rows[index]?.thing === undefined) return stay(state);
  const selected = new Set(state.selected);
  if (!selected.delete(id)) selected.add(id);
  return stay({ ...state, selected, isAll: false, row: id, index });
}

function open(state: TopState, now: number): Next {
  const { rows, index } = viewOf(state, now);
  const { opens, id } = rows[index] ?? {};
  if (!opens) return stay(state);
  return arrive({ ...state, back: [...state.back, { place: state.place, row: id }] }, opens);
}

/** Back, from the nearest to the farthest: an operation that continues, a selection, a search, the page. */
function leave(state: TopState): Next {
  const { operation } = state;
  if (operation !== undefined)
    return { state: { ...state, operation: undefined }, effects: [{ do: 'abort', operation }] };
  if (state.selected.size > 0 || state.isAll) return stay({ ...state, selected: new Set(), isAll: false });
  const { q, state: filter, ...place } = state.place;
  if (q !== undefined || filter !== undefined) return arrive(state, { ...place, number: 1 });
  return back(state);
}

function back(state: TopState): Next {
  const last = state.back.at(-1);
  return last ? arrive({ ...state, back: state.back.slice(0, -1) }, last.place, last.row) : stay(state);
}

function go(state: TopState, key: string): Next {
  const page = tabsOf(state.session).find((one) => one.key === key);
  return page ? arrive({ ...state, back: [] }, { page: page.id }) : stay(state);
}

function tab(state: TopState, by: number): Next {
  const tabs = tabsOf(state.session);
  const at = tabs.findIndex(({ id }) => id === tabOf(state.place.page));
  const next = tabs[(at + by + tabs.length) % tabs.length];
  return next ? arrive({ ...state, back: [] }, { page: next.id }) : stay(state);
}

/** Loads the same place again; what is shown stays until then. */
function reload(state: TopState): Next {
  if (state.isBusy) return stay({ ...state, due: { ...state.due, reload: true } });
  const { place, serial } = state;
  return { state: { ...state, isBusy: true }, effects: [{ do: 'load', place, serial }] };
}

function nextState(state: TopState): Next {
  const { states = [] } = pageOf(state.place.page);
  if (states.length === 0) return stay(state);
  const { state: now, ...place } = state.place;
  const next = now === undefined ? states[0] : states[states.indexOf(now) + 1];
  return arrive(state, { ...place, number: 1, ...(next !== undefined && { state: next }) });
}

function turn(state: TopState, by: number, now: number): Next {
  const { listing } = viewOf(state, now);
  const { number = 1 } = state.place;
  const last = Math.ceil((listing?.total ?? 0) / PER_PAGE);
  const isThere = number + by >= 1 && (number + by <= last || (by > 0 && listing?.atLeast === true));
  return isThere ? arrive(state, { ...state.place, number: number + by }) : stay(state);
}

function search(state: TopState, text: string, key: string): Next {
  const browsing: TopState = { ...state, mode: { kind: 'browse' } };
  if (key === 'Escape') return stay(browsing);
  if (key === 'Enter') {
    const { q, ...place } = state.place;
    const words = text.trim();
    if (words === (q ?? '')) return stay(browsing);
    const next = { ...place, ...(words !== '' && { q: words }) };
    // What is sifted here is here already.
    return pageOf(place.page).searches ? arrive(browsing, { ...next, number: 1 }) : stay({ ...browsing, place: next });
  }
  const typed = key === 'Backspace' ? [...text].slice(0, -1).join('') : key === 'C-u' ? '' : text + letter(key);
  return stay({ ...state, mode: { kind: 'search', text: typed.slice(0, LONGEST_SEARCH) } });
}

/** A key that is a character, not the name of one. */
const letter = (key: string): string => ([...key].length === 1 ? key : '');

function wanted(state: TopState, wish: Wish): Next {
  const begin = (what: 'act' | 'preview', text: string): Next => {
    return { state: { ...state, notice: { text, tone: 'plain' } }, effects: [{ do: what, wish }] };
  };
  if (isAtOnce(wish)) return begin('act', foreign(`${wishText(wish)} …`));
  if (isCounted(wish)) return begin('preview', 'Counting …');
  return stay({ ...state, mode: { kind: 'ask', wish, question: questionOf(wish) } });
}
