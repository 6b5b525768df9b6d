/** A list that is loaded: its table, the pages below it, and the drawers and forms that its rows open. */
import type { ComponentChildren } from 'preact';
import type { Resource } from '../core/api';
import { query } from '../core/router';
import { Pager } from './list';
import { Loaded } from './page';
import { DataTable, type DataTableProps } from './table';

interface List<Row> {
  items: readonly Row[];
  total?: number;
  pagination?: { total?: number; has_more?: boolean };
}

export interface CollectionProps<Row, Data> extends Omit<DataTableProps<Row>, 'rows'> {
  of: Resource<Data>;
  /** Which of the items are shown; default: all. */
  isWanted?: (row: Row) => boolean;
  /** How many there are on a page; absent: it has only one. */
  perPage?: number;
  note?: (data: Data) => ComponentChildren;
  /** The drawer of the row that `?open=` names. */
  drawer?: (row: Row) => ComponentChildren;
  /** The form for the row that `?edit=` names; undefined: for a new one. */
  form?: false | ((row: Row | undefined, onDone: () => void) => ComponentChildren);
  children?: (data: Data) => ComponentChildren;
}

/** @param props.onDone what follows a change by an action or the form; default: it is loaded again */
export function Collection<Row, Data extends List<Row> = List<Row>>(props: CollectionProps<Row, Data>) {
  const { of, isWanted, perPage, note, drawer, form, children, onDone = of.reload, ...table } = props;
  const named = (items: readonly Row[], name: string) => items.find((row) => table.rowKey(row) === query(name));
  return (
    <Loaded of={of}>
      {(data) => {
        const { items, pagination, total = pagination?.total ?? 0 } = data;
        const open = drawer && named(items, 'open');
        return (
          <>
            {note?.(data)}
            <DataTable {...table} onDone={onDone} rows={isWanted ? items.filter(isWanted) : items} />
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
