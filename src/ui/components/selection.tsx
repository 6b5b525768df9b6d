/** Which rows of a table are chosen: some, or all that match the filter, on whatever page they are. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { number } from '../core/format';
import { url } from '../core/router';
import { Button } from './button';

export interface Selection {
  ids: ReadonlySet<string>;
  /** All that match, whether they are shown or not. */
  all: boolean;
  has: (id: string) => boolean;
  toggle: (id: string) => void;
  set: (ids: readonly string[], on: boolean) => void;
  chooseAll: () => void;
  clear: () => void;
}

/** Restarts when filters change. @param keep query parameters that do not count as filters */
export function useSelection(keep: readonly string[] = ['page', 'sort', 'order', 'open']): Selection {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  const [all, setAll] = useState(false);
  const filter = [...url.value.searchParams].filter(([name]) => !keep.includes(name)).join('&');
  const chosenOf = useRef(filter);
  useEffect(() => {
    if (chosenOf.current === filter) return;
    chosenOf.current = filter;
    setIds(new Set());
    setAll(false);
  }, [filter]);
  const change = (edit: (next: Set<string>) => void) => {
    setAll(false);
    setIds((held) => {
      const next = new Set(held);
      edit(next);
      return next;
    });
  };
  return {
    ids,
    all,
    has: (id) => all || ids.has(id),
    toggle: (id) => change((next) => next.delete(id) || next.add(id)),
    set: (given, on) =>
      change((next) => {
        for (const id of given) on ? next.add(id) : next.delete(id);
      }),
    chooseAll: () => setAll(true),
    clear: () => change((next) => next.clear()),
  };
}

/** Stands at the bottom while something is chosen. @param total how many match; its children are the buttons */
export function SelectionBar(props: {
  selection: Selection;
  total: number;
  noun: string;
  children: ComponentChildren;
}) {
  const { selection, total, noun } = props;
  const count = selection.all ? total : selection.ids.size;
  if (count === 0) return null;
  return (
    <section class="selection" aria-label="Selected rows">
      <strong>
        {number(count)} {count === 1 ? noun.replace(/s$/, '') : noun}
        {selection.all && ' (all that match)'}
      </strong>
      {!selection.all && total > count && (
        <Button class="link" onClick={selection.chooseAll}>
          Select all {number(total)} that match
        </Button>
      )}
      <span class="actions">
        {props.children}
        <Button label="Clear" onClick={selection.clear} />
      </span>
    </section>
  );
}
