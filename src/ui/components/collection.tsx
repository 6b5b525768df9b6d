/** A list that is loaded: its table, the pages below it, and forms over it. */
import type { ComponentChildren } from 'preact';
import type { Resource } from '../core/resource';
import { Pager } from './list';
import { Loaded } from './state';
import { DataTable, type DataTableProps } from './table';

interface List<Row> {
  items: readonly Row[];
  total?: number;
  pagination?: { total?: number };
}

export interface CollectionProps<Row, Data> extends Omit<DataTableProps<Row>, 'rows'> {
  of: Resource<Data>;
  /** Which of the items are shown; default: all. */
  isWanted?: (row: Row) => boolean;
  /** How many there are on a page; absent: it has only one. */
  perPage?: number;
  /** Above the table. */
  note?: (data: Data) => ComponentChildren;
  children?: (data: Data) => ComponentChildren;
}

export function Collection<Row, Data extends List<Row> = List<Row>>(props: CollectionProps<Row, Data>) {
  const { of, isWanted, perPage, note, children, ...table } = props;
  return (
    <Loaded of={of}>
      {(data) => (
        <>
          {note?.(data)}
          <DataTable {...table} rows={isWanted ? data.items.filter(isWanted) : data.items} />
          {perPage && <Pager total={data.total ?? data.pagination?.total ?? 0} perPage={perPage} />}
          {children?.(data)}
        </>
      )}
    </Loaded>
  );
}
