/** What is on the screen: as many lines as it has rows, none wider than it is. */
import { offersOf, type TopState, tabOf, tabsOf, type View, viewOf } from './model';
import { type Cell, type Column, type Fact, faint, numberText, PER_PAGE, type Row, warn } from './page';
import { pageOf } from './pages/table';
import { bare, plain, type Span, type Tone } from './style';
import { cutTo, fitTo, foreign, widthOf } from './text';

export type Line = readonly Span[];

export interface Window {
  width: number;
  height: number;
  url: string;
}

/** Smaller windows are drawn as if they were so large, and cut. */
const LEAST = { width: 20, height: 6 };

/** Lines of a window that facts may take: the user works with the table. */
const FACT_SHARE = 0.6;

export function render(state: TopState, { width, height, url }: Window, now: number): Line[] {
  const size = { width: Math.max(LEAST.width, width), height: Math.max(LEAST.height, height) };
  const view = viewOf(state, now);
  const top = [tabLine(state, size.width), whereLine(state, view, size.width)];
  const bottom = [hintLine(state, view, size.width, now), statusLine(state, url, size.width)];
  const room = size.height - top.length - bottom.length;
  const body = state.mode.kind === 'help' ? helpLines(state, size.width) : bodyLines(state, view, size.width, room);
  const filled = [...body.slice(0, room), ...Array<Line>(Math.max(0, room - body.length)).fill([])];
  return [...top, ...filled, ...bottom].slice(0, height).map((line) => cutLine(line, width));
}

/** All of a page, however long: what is printed where there is no screen to draw on. */
export function renderWhole(state: TopState, width: number, now: number): Line[] {
  const view = viewOf(state, now);
  const { listing } = view;
  if (!listing) return state.problem ? problemLines(state) : [];
  const lines = [[{ text: pageOf(state.place.page).title, tone: 'strong' as const }], ...factLines(listing.facts)];
  if (listing.rows.length === 0) return [...lines, [], [plain(listing.empty)]];
  const shape = shapeOf(listing.columns, view.rows, width, 0);
  const rows = view.rows.map((row) => rowLine(row, listing.columns, shape));
  return [...lines, [], headLine(listing.columns, shape), ...rows];
}

/** Shows the keys of the tabs when they work: after `g`. */
function tabLine({ session, place, isGoing }: TopState, width: number): Line {
  const here = tabOf(place.page);
  const tabs = tabsOf(session);
  const named = tabs.map(({ id, title, key = '' }): Span => {
    const text = isGoing ? ` ${key} ${title}` : ` ${title} `;
    return { text, tone: id === here ? 'chosen' : 'plain' };
  });
  if (named.reduce((sum, { text }) => sum + text.length, 0) <= width) return named;
  // The names of the others do not fit.
  const short = tabs.map(({ id, key = '' }, place): Span => {
    return id === here ? (named[place] ?? plain('')) : faint(isGoing ? ` ${key}` : '');
  });
  return cutLine(isGoing ? short : [...short, faint('  g: other pages')], width);
}

function whereLine(state: TopState, { listing, rows }: View, width: number): Line {
  const { place, isBusy, newer, selected, isAll } = state;
  const page = pageOf(place.page);
  const { total } = listing ?? {};
  const pages = Math.ceil((total ?? 0) / PER_PAGE);
  const parts: Span[] = [
    { text: ` ${page.title}${place.name ? ` ${foreign(place.name)}` : ''}`, tone: 'strong' },
    ...(place.state ? [plain(`  state: ${place.state}`)] : []),
    ...(place.q ? [plain(`  search: ${foreign(place.q)}`)] : []),
    ...(total === undefined ? [] : [faint(`  ${numberText(total)}${listing?.atLeast ? '+' : ''} in all`)]),
    ...(place.q && !page.searches && listing ? [faint(`, ${rows.length} shown`)] : []),
    ...(pages > 1 ? [faint(`  page ${place.number ?? 1} of ${pages}`)] : []),
    ...(isAll ? [warn('  all that match')] : []),
    ...(selected.size > 0 ? [warn(`  ${selected.size} selected`)] : []),
    ...(newer > 0 ? [{ text: `  ${numberText(newer)} newer: u`, tone: 'calm' as Tone }] : []),
    ...(isBusy ? [faint('  …')] : []),
  ];
  return cutLine(parts, width);
}

function bodyLines(state: TopState, view: View, width: number, room: number): Line[] {
  const { listing, rows, index } = view;
  const problem = state.problem ? problemLines(state) : [];
  if (!listing) return problem.length > 0 ? problem : [[], [faint(' Loading …')]];
  const facts = factLines(listing.facts);
  const most = rows.length > 0 ? Math.max(1, Math.floor(room * FACT_SHARE)) : room - 2;
  const shownFacts = facts.length > most ? [...facts.slice(0, most - 1), [faint('   …')]] : facts;
  const above = [...problem, ...shownFacts, ...(facts.length > 0 ? [[]] : [])];
  if (rows.length === 0) {
    return [...above, [plain(` ${state.place.q ? 'No row contains these words.' : listing.empty}`)]];
  }
  const height = Math.max(1, room - above.length - 1);
  const from = Math.max(0, Math.min(index - Math.floor(height / 2), rows.length - height));
  const shown = rows.slice(from, from + height);
  const shape = shapeOf(listing.columns, rows, width, MARGIN);
  const lines = shown.map((row, place) => {
    const isMarked = row.thing !== undefined && (state.isAll || state.selected.has(row.id));
    const line = [plain(isMarked ? '● ' : '  '), ...rowLine(row, listing.columns, shape)];
    return from + place === index ? chosen(line, width) : line;
  });
  return [...above, [plain('  '), ...headLine(listing.columns, shape)], ...lines];
}

/** Columns before each row: whether it is selected. */
const MARGIN = 2;

const chosen = (line: Line, width: number): Line => [{ text: fitTo(bare(line), width), tone: 'chosen' }];

function problemLines({ problem }: TopState): Line[] {
  if (!problem) return [];
  return [
    [{ text: ` ${foreign(problem.message)}`, tone: 'bad' }],
    ...(problem.hint ? [[plain(` → ${foreign(problem.hint)}`)]] : []),
    [],
  ];
}

function factLines(facts: readonly Fact[]): Line[] {
  const known = facts.flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const width = Math.max(0, ...known.map(([name]) => widthOf(name)));
  return known.map(([name, value]) => [faint(` ${fitTo(name, width)}  `), spanOf(value)]);
}

const spanOf = (cell: Cell): Span => (typeof cell === 'object' ? cell : plain(textIn(cell)));

const textIn = (cell: Cell | undefined): string =>
  typeof cell === 'object' ? cell.text : typeof cell === 'number' ? numberText(cell) : (cell ?? '');

/** The width of each column; 0: it is left out. */
type Shape = readonly number[];

const GAP = 2;
/** The last column takes what is left; with less than this it is left out, if it may be. */
const LEAST_LAST = 12;

function shapeOf(columns: readonly Column[], rows: readonly Row[], width: number, margin: number): Shape {
  const wanted = columns.map(({ label, most = Number.POSITIVE_INFINITY }, place) =>
    Math.min(most, Math.max(widthOf(label), ...rows.map(({ cells }) => widthOf(textIn(cells[place]))))),
  );
  const kept = columns.map(() => true);
  const isLast = (place: number) => place === columns.length - 1;
  const need = () =>
    wanted.reduce((sum, one, place) => {
      if (!kept[place]) return sum;
      return sum + GAP + (isLast(place) && !columns[place]?.end ? Math.min(one, LEAST_LAST) : one);
    }, margin - GAP);
  const byRank = columns.map(({ rank = 0 }, place) => ({ rank, place })).sort((a, b) => b.rank - a.rank);
  for (const { rank, place } of byRank) {
    if (need() <= width) break;
    if (rank > 0) kept[place] = false;
  }
  const shape = wanted.map((one, place) => (kept[place] ? one : 0));
  // Columns that stay although there is no room give way, the widest first.
  for (let over = need() - width; over > 0; over--) {
    const widest = shape.indexOf(Math.max(...shape));
    shape[widest] = Math.max(1, (shape[widest] ?? 1) - 1);
  }
  const last = shape.length - 1;
  const others = shape.slice(0, last).reduce((sum, one) => sum + (one > 0 ? one + GAP : 0), margin);
  if ((shape[last] ?? 0) > 0) shape[last] = Math.max(1, Math.min(shape[last] ?? 0, width - others));
  return shape;
}

const headLine = (columns: readonly Column[], shape: Shape): Line =>
  lineOf(shape, (place) => faint(fitTo(columns[place]?.label ?? '', shape[place] ?? 0, columns[place]?.end)));

const rowLine = ({ cells }: Row, columns: readonly Column[], shape: Shape): Line =>
  lineOf(shape, (place) => {
    const cell = cells[place] ?? '';
    const { tone } = spanOf(cell);
    return { text: fitTo(textIn(cell), shape[place] ?? 0, columns[place]?.end), tone };
  });

function lineOf(shape: Shape, spanAt: (place: number) => Span): Line {
  const places = shape.flatMap((width, place) => (width > 0 ? [place] : []));
  return places.flatMap((place, nth) => (nth === 0 ? [spanAt(place)] : [plain(' '.repeat(GAP)), spanAt(place)]));
}

function cutLine(line: Line, width: number): Line {
  const kept: Span[] = [];
  let left = width;
  for (const { text, tone } of line) {
    if (left <= 0) break;
    const shown = cutTo(text, left);
    kept.push({ text: shown, tone });
    left -= widthOf(shown);
  }
  return kept;
}

function hintLine(state: TopState, view: View, width: number, now: number): Line {
  const { mode, notice } = state;
  if (mode.kind === 'search') return cutLine([plain(` /${foreign(mode.text)}`), { text: ' ', tone: 'chosen' }], width);
  if (mode.kind === 'ask') {
    const rest = ' y: yes, any other key: no';
    const question = cutTo(` ${mode.question}`, Math.max(8, width - rest.length));
    return [{ text: question, tone: 'warn' }, plain(rest)];
  }
  if (notice) return [{ text: cutTo(` ${notice.text}`, width), tone: notice.tone }];
  const offers = offersOf(state, now, view).map(({ action, things }) => {
    const thing = things[0] ?? { kind: action.kind, id: '' };
    return `${action.key} ${action.verb(thing)}`;
  });
  const { states } = pageOf(state.place.page);
  const { opens, thing } = view.rows[view.index] ?? {};
  const keys = [
    ...[...offers, opens && 'Enter open', thing && 'x select', states && 's state', 'g pages', '/ search', '? help'],
    state.back.length > 0 ? 'q back' : 'q quit',
  ].filter(Boolean);
  return [faint(cutTo(` ${keys.join('  ')}`, width))];
}

const CONNECTIONS: Record<TopState['connection'], Span> = {
  connecting: { text: 'connecting', tone: 'warn' },
  live: { text: 'live', tone: 'good' },
  lost: { text: 'connection lost, reconnecting', tone: 'bad' },
  refused: { text: 'not live', tone: 'warn' },
};

function statusLine({ connection, isPaused, held, session, isGoing }: TopState, url: string, width: number): Line {
  const live = isPaused ? warn(`paused, ${held.length} held`) : CONNECTIONS[connection];
  const who = session.name ? `${foreign(session.name)} (${session.role})` : session.role;
  return cutLine([plain(' '), live, faint(`  ${who}  ${foreign(url)}${isGoing ? '  g …' : ''}`)], width);
}

const HELP: readonly (readonly [keys: string, what: string])[] = [
  ['j k ↓ ↑', 'next and previous row; PageDown, PageUp, Home, End'],
  ['Enter', 'open the row'],
  ['Esc', 'back: selection, search, page'],
  ['x', 'select the row'],
  ['A', 'all that match'],
  ['/', 'search: the contents of jobs on Jobs, else the rows'],
  ['s', 'next state'],
  ['[ ]', 'previous and next page of a list'],
  ['Tab ← →', 'next and previous tab'],
  ['.', 'pause live updates'],
  ['u', 'reload'],
  ['r', 'retry, redrive, run now, try a handler'],
  ['c', 'cancel'],
  ['p', 'pause, resume'],
  ['d', 'discard a group of failures'],
  ['m', 'maintenance, on Overview'],
  ['q', 'back to the page before, or quit'],
];

function helpLines({ session }: TopState, width: number): Line[] {
  const pages = tabsOf(session).map(({ key, title }) => [`g ${key}`, title] as const);
  const line = ([keys, what]: readonly [string, string]): Line => [
    { text: fitTo(` ${keys}`, 11), tone: 'strong' },
    plain(what),
  ];
  // In a wide window the pages are next to the keys.
  if (width < 90) return [[], ...HELP.map(line), [], ...pages.map(line), [], [faint(' Press any key to go back.')]];
  const beside = HELP.map((entry, place): Line => {
    const page = pages[place];
    const left = line(entry);
    const used = left.reduce((sum, { text }) => sum + widthOf(text), 0);
    return page ? [...left, plain(' '.repeat(Math.max(1, 70 - used))), ...line(page)] : left;
  });
  return [[], ...beside, [], [faint(' Press any key to go back.')]];
}
