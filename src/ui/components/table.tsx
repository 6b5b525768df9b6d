/** Tables. Sorting and pages are in the URL; keys: `x` select, `j`/`k` move, Enter open. Cards on narrow screens. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import type { Resource } from '../core/api';
import { useKeys } from '../core/keyboard';
import { navigate, query, withQuery } from '../core/router';
import { type Action, Actions, keysOf } from './actions';
import { Icon } from './icon';
import { Pager } from './list';
import { Empty, Loaded } from './page';
import type { Selection } from './selection';
import { Count, Foreign, None, Time } from './text';

export interface Column<Row> {
  id: string;
  label: string;
  render: (row: Row) => ComponentChildren;
  /** In small below that; nothing where it is empty. */
  under?: (row: Row) => ComponentChildren;
  /** Of rows that are all here: what they are sorted by. `true`: the server sorts by the column's id. */
  sort?: boolean | ((row: Row) => string | number);
  end?: boolean;
  /** The one that names the row; the first by default. */
  main?: boolean;
  /** Its label is for those who cannot see the column, as of buttons. */
  bare?: boolean;
  /** Left out on narrow screens. */
  wide?: boolean;
  /** Of a {@link countColumn}: the colour of numbers above zero. */
  tone?: string;
}

export interface DataTableProps<Row> {
  label: string;
  rows: readonly Row[];
  columns: readonly Column<Row>[];
  rowKey: (row: Row) => string;
  rowHref?: false | ((row: Row) => string);
  /** Of {@link useSelection}, where rows can be chosen. */
  selection?: Selection | undefined;
  actions?: false | readonly Action<Row>[];
  /** Names a row after the labels of its buttons. */
  nameOf?: (row: Row) => string;
  /** Called after an action that changed something. */
  onDone?: () => void;
  /** Keys of rows that have just changed: they flash. */
  changed?: ReadonlySet<string>;
  empty: ComponentChildren;
}

type Render<Row> = Column<Row>['render'];
type More<Row> = Partial<Omit<Column<Row>, 'render'>>;
/** More about a column, if there is more, and how it shows a row. */
type Rest<Row> = [Render<Row>] | [More<Row>, Render<Row>];
type Own<Row> = [more?: More<Row>] | Rest<Row>;

export function column<Row>(id: string, label: string, ...rest: Rest<Row>): Column<Row> {
  const [render, more = {}] = rest.toReversed() as [Render<Row>, More<Row>?];
  return { id, label, render, ...more };
}

type Member<Row> = keyof Row & string;
const at = <T,>(row: object, member: string): T => Reflect.get(row, member) as T;

/** A column of one member. @param usual what it is unless `rest` says otherwise */
function ofMember<Row>(usual: Column<Row>, [first, render]: Own<Row>): Column<Row> {
  return typeof first === 'function' ? { ...usual, render: first } : { ...usual, ...first, ...(render && { render }) };
}

export function textColumn<Row extends object>(member: Member<Row>, label: string, ...rest: Own<Row>): Column<Row> {
  const textOf = (row: Row) => at<string | null | undefined>(row, member) ?? '';
  const render = (row: Row) => (textOf(row) === '' ? <None /> : <Foreign>{textOf(row)}</Foreign>);
  return ofMember({ id: member, label, sort: textOf, render }, rest);
}

/** A column of numbers. */
export function countColumn<Row extends object>(member: Member<Row>, label: string, ...rest: Own<Row>): Column<Row> {
  const count = (row: Row) => at<number>(row, member);
  const render = (row: Row) => (
    <span class={made.tone && count(row) > 0 ? made.tone : ''}>
      <Count value={count(row)} />
    </span>
  );
  const made = ofMember({ id: member, label, end: true, sort: count, render }, rest);
  return made;
}

/** A column of times, given as RFC 3339. Not sorted by default. */
export function timeColumn<Row extends object>(member: Member<Row>, label: string, ...rest: Own<Row>): Column<Row> {
  const render = (row: Row) => <Time at={at<string | null | undefined>(row, member)} />;
  return ofMember({ id: member, label, end: true, render }, rest);
}

export function DataTable<Row>(props: DataTableProps<Row>) {
  const { label, rowKey, rowHref, selection, actions, nameOf, onDone = () => {}, changed, empty } = props;
  const buttons = (actions || []).filter(({ keyOnly }) => !keyOnly);
  const buttonColumn = column<Row>('actions', 'Actions', { bare: true, end: true }, (row) => (
    <Actions small of={row} actions={buttons} name={nameOf?.(row)} onDone={onDone} />
  ));
  const columns = buttons.length > 0 ? [...props.columns, buttonColumn] : props.columns;
  const rows = sorted(props.rows, columns);
  const [, setAt] = useState(-1);
  // Keys may follow each other before the table is drawn again.
  const at = useRef(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  const indexNow = () => Math.min(at.current, rows.length - 1);
  const index = indexNow();

  const move = (by: number) => {
    const next = Math.max(0, Math.min(rows.length - 1, indexNow() + by));
    at.current = next;
    setAt(next);
    const row = body.current?.rows[next];
    row?.scrollIntoView({ block: 'nearest' });
    row?.focus({ preventScroll: true });
  };
  const onCurrent = (run: (row: Row) => void) => () => {
    const current = rows[indexNow()];
    if (current !== undefined) run(current);
  };
  const isSelecting = selection !== undefined && (selection.all || selection.ids.size > 0);
  useKeys(label, {
    j: { label: 'Next row', run: () => move(1) },
    k: { label: 'Previous row', run: () => move(-1) },
    ...(rowHref && { Enter: { label: 'Open the row', run: onCurrent((row) => navigate(rowHref(row))) } }),
    ...(selection && {
      x: { label: 'Select the row', run: onCurrent((row) => selection.toggle(rowKey(row))) },
      A: { label: 'Select all that match', run: () => selection.chooseAll() },
    }),
    ...keysOf(actions || [], () => rows[indexNow()], onDone, isSelecting),
  });

  if (rows.length === 0) return <>{empty}</>;
  return (
    <div class="table-frame">
      <table class="table" aria-label={label}>
        <thead>
          <tr>
            {selection && (
              <th class="choose">
                <Choose
                  label="Select all rows on this page"
                  checked={rows.every((row) => selection.has(rowKey(row)))}
                  some={rows.some((row) => selection.has(rowKey(row)))}
                  onChange={(on) => selection.set(rows.map(rowKey), on)}
                />
              </th>
            )}
            {columns.map((column) => (
              <HeadCell key={column.id} column={column} />
            ))}
          </tr>
        </thead>
        <tbody ref={body}>
          {rows.map((row, position) => {
            const key = rowKey(row);
            return (
              <tr
                key={key}
                tabIndex={-1}
                class={`${position === index ? 'current' : ''}${changed?.has(key) ? ' changed' : ''}`}
                aria-selected={selection ? selection.has(key) : undefined}
                onFocusCapture={() => setAt(position)}
              >
                {selection && (
                  <td class="choose">
                    <Choose
                      label={`Select ${key}`}
                      checked={selection.has(key)}
                      onChange={() => selection.toggle(key)}
                    />
                  </td>
                )}
                {columns.map((column, number) => (
                  <td
                    key={column.id}
                    data-label={column.bare ? '' : column.label}
                    class={[
                      column.end && 'end',
                      column.wide && 'wide',
                      (column.main ?? (number === 0 && !columns.some(({ main }) => main))) && 'main',
                    ]
                      .filter(Boolean)
                      .join(' ')}
                  >
                    {column.render(row)}
                    {below(column.under?.(row))}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

const below = (text: ComponentChildren) => text && <small class="under">{text}</small>;

function HeadCell<Row>({ column }: { column: Column<Row> }) {
  const { id, label, sort, end, wide, bare } = column;
  const isSorted = query('sort') === id;
  const isDescending = query('order') === 'desc';
  return (
    <th
      scope="col"
      class={`${end ? 'end' : ''}${wide ? ' wide' : ''}`}
      aria-sort={isSorted ? (isDescending ? 'descending' : 'ascending') : undefined}
    >
      {sort ? (
        <a href={withQuery({ sort: id, order: isSorted && !isDescending ? 'desc' : null })}>
          {label}
          {isSorted && <Icon name={isDescending ? 'down' : 'up'} size={12} />}
        </a>
      ) : (
        <span class={bare ? 'hidden' : ''}>{label}</span>
      )}
    </th>
  );
}

function Choose(props: { label: string; checked: boolean; some?: boolean; onChange: (on: boolean) => void }) {
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current) field.current.indeterminate = props.some === true && !props.checked;
  });
  return (
    <input
      ref={field}
      type="checkbox"
      aria-label={props.label}
      checked={props.checked}
      onChange={({ currentTarget }) => props.onChange(currentTarget.checked)}
    />
  );
}

function sorted<Row>(rows: readonly Row[], columns: readonly Column<Row>[]): readonly Row[] {
  const by = columns.find(({ id }) => id === query('sort'))?.sort;
  if (typeof by !== 'function') return rows;
  const direction = query('order') === 'desc' ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [one, other] = [by(a), by(b)];
    return one === other ? 0 : one < other ? -direction : direction;
  });
}

interface List<Row> {
  items: readonly Row[];
  total?: number;
  pagination?: { total?: number; has_more?: boolean };
}

interface CollectionProps<Row, Data> extends Omit<DataTableProps<Row>, 'rows'> {
  of: Resource<Data>;
  isWanted?: (row: Row) => boolean;
  /** What an empty list is called while filters are set. */
  unmatched?: string | false;
  /** How many there are on a page; absent: it has only one. */
  perPage?: number;
  note?: (data: Data) => ComponentChildren;
  /** The drawer of the row that `?open=` names. */
  drawer?: (row: Row) => ComponentChildren;
  /** The form for the row that `?edit=` names; undefined: for a new one. */
  form?: false | ((row: Row | undefined, onDone: () => void) => ComponentChildren);
  children?: (data: Data) => ComponentChildren;
}

/** The table of a loaded list, with its pages. @param props.onDone follows a change; default: it is loaded again */
export function Collection<Row, Data extends List<Row> = List<Row>>(props: CollectionProps<Row, Data>) {
  const { of, isWanted, unmatched, perPage, note, drawer, form, children, onDone = of.reload, ...table } = props;
  const empty = unmatched ? <Empty icon="search" title={unmatched} /> : table.empty;
  const named = (items: readonly Row[], name: string) => items.find((row) => table.rowKey(row) === query(name));
  return (
    <Loaded of={of}>
      {(data) => {
        const { items, pagination, total = pagination?.total ?? 0 } = data;
        const open = drawer && named(items, 'open');
        return (
          <>
            {note?.(data)}
            <DataTable {...{ ...table, onDone, empty }} rows={isWanted ? items.filter(isWanted) : items} />
            {perPage && <Pager total={total} perPage={perPage} hasMore={pagination?.has_more} />}
            {open && drawer(open)}
            {form && query('edit') && form(named(items, 'edit'), onDone)}
            {children?.(data)}
          </>
        );
      }}
    </Loaded>
  );
}
