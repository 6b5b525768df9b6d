import type { Scope } from '../../access/access';
import type { QueueEvent } from '../../client/follow';
import { parametersFrom } from '../../client/pages';
import { lengthText, whenText } from '../output';
import type { Layout, Column as ViewColumn } from '../views';
import { JOB_STATES } from '../views';
import type { Api } from './api';
import { type Span, toneOf } from './style';
import { foreign } from './text';

const ONES = ['queue', 'job', 'workflow'] as const;
type OneId = (typeof ONES)[number];
type ListId = `${OneId}s` | 'failures' | 'schedules' | 'workers' | 'limits' | 'events' | 'webhooks' | 'audit';

export type PageId = 'overview' | OneId | ListId | 'settings';

/** Is it the page of one thing, which has a name? */
export const isOne = (page: PageId): page is OneId => ONES.some((one) => one === page);

export interface PagePlace {
  page: PageId;
  name?: string;
  q?: string;
  state?: string;
  fingerprint?: string;
  /** From 1. */
  number?: number;
}

export interface Thing {
  kind: 'job' | 'queue' | 'group' | 'schedule' | 'workflow' | 'worker' | 'target' | 'webhook' | 'deployment';
  id: string;
  /** As people know it, where that is not its id. */
  called?: string;
  state?: string;
}

export type Cell = string | number | Span;

export interface Row {
  id: string;
  cells: readonly Cell[];
  thing?: Thing;
  opens?: PagePlace;
}

export interface Column extends Layout {
  label: string;
}

/** Left out where the value is undefined. */
export type Fact = readonly [name: string, value: Cell | undefined];

export interface Listing {
  facts: readonly Fact[];
  columns: readonly Column[];
  rows: readonly Row[];
  /** Of all pages of the list; `atLeast`: there may be more. */
  total?: number;
  atLeast?: boolean;
  empty: string;
  subject?: Thing;
}

/** What events change: the answer, names to ask about, all of it, or only that there is something newer. */
export interface Change<Answer> {
  answer?: Answer;
  ask?: readonly string[];
  reload?: boolean;
  newer?: number;
}

export interface Page<Answer> {
  id: PageId;
  title: string;
  /** After `g`. */
  key?: string;
  /** Without it the page is not there. */
  scope: Scope;
  /** States that `s` goes through. */
  states?: readonly string[];
  /** The server searches; elsewhere the rows that are shown are sifted. */
  searches?: boolean;
  load(api: Api, place: PagePlace): Promise<Answer>;
  show(answer: Answer, place: PagePlace, now: number): Listing;
  /** Without it nothing that happens changes the page. */
  receive?(answer: Answer, events: readonly QueueEvent[], place: PagePlace): Change<Answer>;
  /** Asks about what {@link Change.ask} named; answers what to make of the page's answer. */
  ask?(api: Api, names: readonly string[]): Promise<(answer: Answer) => Answer>;
}

/** Erases the type of a page's answer, which only the page knows. */
export function definePage<Answer>(page: Page<Answer>): Page<unknown> {
  return page as unknown as Page<unknown>;
}

/** Columns and rows. A cell that is a piece of a line is shown as it is. @param about each item, beside its cells */
export const listOf = <Item>(
  items: readonly Item[],
  columns: readonly ViewColumn<Item>[],
  now: number,
  about: (item: Item) => Omit<Row, 'cells'>,
): Pick<Listing, 'columns' | 'rows'> => ({
  columns: columns.map(([label, , layout]) => ({ label, ...layout })),
  rows: items.map((item) => ({
    ...about(item),
    cells: columns.map(([, cell, layout]) => cellOf(cell(item, now), layout?.is)),
  })),
});

function cellOf(value: unknown, is: Layout['is']): Cell {
  if (typeof value === 'number') return count(value, is === 'bad');
  if (typeof value === 'object' && value !== null) return value as Span;
  const text = String(value ?? '');
  if (is === 'state') return stateCell(text);
  return is === 'mode' && text !== 'active' ? stateCell(text) : foreign(text);
}

/** @param isTrouble it is bad that there is any */
export function count(value: number, isTrouble = false): Cell {
  if (value === 0) return faint('0');
  return isTrouble ? bad(numberText(value)) : numberText(value);
}

export const PER_PAGE = 50;

export const pageQuery = ({ number = 1 }: PagePlace, conditions: Parameters<typeof parametersFrom>[0] = {}) =>
  parametersFrom({ ...conditions, page: number, perPage: PER_PAGE });

export const stateCell = (state: string): Span => ({ text: foreign(state), tone: toneOf(state) });

export const bad = (text: string): Span => ({ text, tone: 'bad' });
export const warn = (text: string): Span => ({ text, tone: 'warn' });
export const faint = (text: string): Span => ({ text, tone: 'faint' });

/** `scheduled 1 · completed 8`: the states that have jobs, in the order of their lives. */
export const countsText = (counts: { readonly [state: string]: number } = {}): string =>
  JOB_STATES.flatMap((state) => (counts[state] ? `${state} ${numberText(counts[state])}` : [])).join(' · ') || 'none';

export const numberText = (value: number): string => value.toLocaleString('en');

/** A duration in ms, as short as possible. */
export function msText(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1_000) return `${Math.round(ms * 10) / 10} ms`;
  return ms < 10_000 ? `${(ms / 1_000).toFixed(1)} s` : lengthText(ms);
}

/** How long ago, or how soon; `–` for none. */
export const ageText = (time: string | null | undefined, now: number): string =>
  foreign(whenText(time ?? undefined, now) ?? '–');

/** How long something has lasted, without saying that it is past. */
export const lastsText = (since: string | null | undefined, now: number): string =>
  since ? lengthText(now - Date.parse(since)) : '–';
