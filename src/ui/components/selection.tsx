/** Which rows of a table are chosen: some, or all that match the filter, on whatever page they are. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { number } from '../core/format';
import { url } from '../core/router';
import { Button } from './button';

export type Selection = ReturnType<typeof useSelection>;

/** Restarts when filters change. @param keep query parameters that do not count as filters */
export function useSelection(keep: readonly string[]) {
  const [ids, setIds] = useState<ReadonlySet<string>>(new Set());
  // All that match, whether they are shown or not.
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
    has: (id: string) => all || ids.has(id),
    toggle: (id: string) => change((next) => next.delete(id) || next.add(id)),
    set: (given: readonly string[], on: boolean) =>
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
