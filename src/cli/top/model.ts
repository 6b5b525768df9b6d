/** The user's place and view in `top`: a value. What happens to it is in press.ts and happen.ts. */
import type { Scope } from '../../access/access';
import type { QueueEvent } from '../../client/follow';
import type { Session } from '../../contract/session';
import type { PrintedFailure } from '../failure';
import { ACTIONS, type Action, type Wish } from './actions';
import { isOne, type Listing, type PageId, type PagePlace, type Row, type Thing } from './page';
import { PAGES, pageOf } from './pages/table';
import type { Tone } from './style';

export type Mode =
  | { kind: 'browse' }
  | { kind: 'help' }
  | { kind: 'search'; text: string }
  | { kind: 'ask'; wish: Wish; question: string };

export type Problem = Pick<PrintedFailure, 'message' | 'hint'>;

export interface TopState {
  session: Session;
  place: PagePlace;
  /** Places before, each with the row that was at. */
  back: readonly { place: PagePlace; row: string | undefined }[];
  /** Of the page; undefined until it is there. */
  answer: unknown;
  /** Grows with each place, so that a late answer is known as such. */
  serial: number;
  /** Something is asked of the server for the page. */
  isBusy: boolean;
  due: { reload: boolean; names: readonly string[] };
  problem: Problem | undefined;
  /** The row that is at, and which one it was when it was there last. */
  row: string | undefined;
  index: number;
  selected: ReadonlySet<string>;
  /** All that match are meant, beyond those shown. */
  isAll: boolean;
  mode: Mode;
  /** `g` has been typed. */
  isGoing: boolean;
  isPaused: boolean;
  held: readonly QueueEvent[];
  newer: number;
  notice: { text: string; tone: Tone } | undefined;
  operation: string | undefined;
  connection: 'connecting' | 'live' | 'lost' | 'refused';
}

export type Effect =
  | { do: 'load'; place: PagePlace; serial: number }
  | { do: 'ask'; names: readonly string[]; place: PagePlace; serial: number }
  | { do: 'preview'; wish: Wish }
  | { do: 'act'; wish: Wish }
  | { do: 'abort'; operation: string }
  | { do: 'suspend' | 'clear' | 'quit' };

export interface Next {
  state: TopState;
  effects: readonly Effect[];
}

export const stay = (state: TopState): Next => ({ state, effects: [] });

type Kept = Pick<TopState, 'session' | 'back' | 'serial' | 'isPaused' | 'notice' | 'operation' | 'connection'>;

export function begin(session: Session, place: PagePlace = { page: tabsOf(session)[0]?.id ?? 'overview' }): Next {
  const still = { notice: undefined, operation: undefined, isPaused: false } as const;
  return arrive({ session, back: [], serial: 0, connection: 'connecting', ...still }, place);
}

/** Goes to a place, whose answer is not there yet. */
export function arrive(kept: Kept, place: PagePlace, row?: string): Next {
  const serial = kept.serial + 1;
  const state: TopState = {
    ...{ ...kept, place, serial, row, answer: undefined, problem: undefined, index: 0, newer: 0, held: [] },
    ...{ selected: new Set<string>(), isAll: false, isBusy: true, isGoing: false, mode: { kind: 'browse' } },
    due: { reload: false, names: [] },
  };
  return { state, effects: [{ do: 'load', place, serial }] };
}

export const can = ({ session }: Pick<TopState, 'session'>, scope: Scope): boolean => session.scopes.includes(scope);

/** The tabs: pages that have a key, and that this key of the API may see. */
export const tabsOf = (session: Session) =>
  PAGES.filter(({ key, scope }) => key !== undefined && session.scopes.includes(scope));

/** A thing is below the tab of its list. */
export const tabOf = (page: PageId): PageId => (isOne(page) ? `${page}s` : page);

/** What is shown: the rows that the words leave, and which of them is at. */
export interface View {
  listing: Listing | undefined;
  rows: readonly Row[];
  index: number;
}

export function viewOf({ answer, place, row, index }: TopState, now: number): View {
  const page = pageOf(place.page);
  if (answer === undefined) return { listing: undefined, rows: [], index: 0 };
  const listing = page.show(answer, place, now);
  const rows = place.q && !page.searches ? listing.rows.filter((one) => isMeant(one, place.q ?? '')) : listing.rows;
  const found = rows.findIndex(({ id }) => id === row);
  return { listing, rows, index: found < 0 ? Math.max(0, Math.min(index, rows.length - 1)) : found };
}

function isMeant({ id, cells }: Row, words: string): boolean {
  const shown = cells.map((cell) => (typeof cell === 'object' ? cell.text : cell));
  const text = [id, ...shown].join(' ').toLowerCase();
  const wanted = words.toLowerCase().split(/\s+/);
  return wanted.every((word) => text.includes(word));
}

/** What can be done here and now, and with what. */
export function offersOf(state: TopState, now: number, { listing, rows, index } = viewOf(state, now)): Wish[] {
  const at = rows[index]?.thing;
  const chosen = rows.flatMap(({ id, thing }) => (thing && state.selected.has(id) ? [thing] : []));
  const meant = state.isAll ? rows.flatMap(({ thing }) => thing ?? []) : chosen.length > 0 ? chosen : at ? [at] : [];
  const candidates = [...wishesFor(state, meant), ...(listing?.subject ? wishesFor(state, [listing.subject]) : [])];
  return candidates.filter(
    (wish, place) => candidates.findIndex(({ action }) => action.key === wish.action.key) === place,
  );
}

function wishesFor(state: TopState, meant: readonly Thing[]): Wish[] {
  return ACTIONS.filter(({ scope }) => can(state, scope)).flatMap((action): Wish[] => {
    const things = meant.filter((thing) => thing.kind === action.kind && action.verb(thing) !== undefined);
    const filter = state.isAll && action.many && action.kind === 'job' ? filterOf(state.place, action) : undefined;
    if (filter) return [{ action, things: [], filter }];
    // What has different effects on different ones is done one by one.
    const verb = things[0] && action.verb(things[0]);
    const alike = things.filter((thing) => action.verb(thing) === verb);
    return alike.length > 0 ? [{ action, things: alike }] : [];
  });
}

function filterOf(
  { page, name, q, state, fingerprint }: PagePlace,
  { states }: Action,
): Record<string, unknown> | undefined {
  if (page !== 'jobs' && page !== 'queue') return undefined;
  return {
    ...(q && { q }),
    state: state ? [state] : states,
    ...(fingerprint && { fingerprint: [fingerprint] }),
    ...(page === 'queue' && { queue: name }),
  };
}
