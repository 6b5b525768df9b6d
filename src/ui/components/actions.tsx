/** What can be done to a thing, declared once: buttons in its row or drawer, and keys. */

import { can } from '../core/api';
import { type Keys, useKeys } from '../core/keyboard';
import { openAside } from '../core/router';
import { Button } from './button';

export interface Action<Row> {
  label: string | ((row: Row) => string);
  /** Does it. @returns true: what is shown has changed */
  run: (row: Row) => unknown;
  /** A key, with what the help calls it. */
  key?: readonly [key: string, label: string];
  /** It has a key, and no button. */
  keyOnly?: boolean;
  /** What its key does while rows are selected. */
  onSelection?: () => void;
  /** Default: it can be done to all. */
  isFor?: (row: Row) => boolean;
  danger?: boolean;
  /** What it is done to is gone afterwards: its drawer closes. */
  removes?: boolean;
}

export interface ActionsProps<Row> {
  of: Row;
  actions: readonly Action<Row>[];
  /** In a row of a table. @default false */
  small?: boolean;
  /** In a drawer: the scope without which there are none. */
  scope?: string;
  /** Names the row after each label, for those who cannot see which it is. */
  name?: string | undefined;
  onDone: () => void;
}

async function perform<Row>({ run, isFor, removes }: Action<Row>, row: Row, onDone: () => void): Promise<void> {
  if (isFor?.(row) === false || (await run(row)) !== true) return;
  if (removes) openAside({ open: null });
  onDone();
}

export function Actions<Row>({ of: row, actions, small, scope, name, onDone }: ActionsProps<Row>) {
  if (scope && !can(scope)) return null;
  const buttons = actions.map((action) => {
    if (action.isFor?.(row) === false) return null;
    const label = typeof action.label === 'string' ? action.label : action.label(row);
    return (
      <Button
        key={label}
        label={label}
        class={small ? 'small' : action.danger ? 'danger' : ''}
        aria-label={name && `${label} ${name}`}
        onClick={() => perform(action, row, onDone)}
      />
    );
  });
  if (small) return <span class="row-actions">{buttons}</span>;
  return scope ? <div class="actions">{buttons}</div> : buttons;
}

/** The keys of actions. @param rowNow what they are done to; undefined: nothing @param isSelecting rows are selected */
export function keysOf<Row>(
  actions: readonly Action<Row>[],
  rowNow: () => Row | undefined,
  onDone: () => void,
  isSelecting = false,
): Keys {
  const entries = actions.flatMap((action) => {
    if (!action.key) return [];
    const [key, label] = action.key;
    const run = () => {
      if (isSelecting && action.onSelection) return action.onSelection();
      const row = rowNow();
      if (row !== undefined) perform(action, row, onDone);
    };
    return [[key, { label, run }] as const];
  });
  return Object.fromEntries(entries);
}

/** {@link Actions} of the page itself, with their keys. @param props.title a heading of the help */
export function PageActions<Row>({ title, ...props }: { title: string } & ActionsProps<Row>) {
  const { of: row, actions, onDone } = props;
  const now = actions.filter(({ isFor }) => isFor?.(row) !== false);
  const keys = keysOf(now, () => row, onDone);
  useKeys(title, keys);
  return <Actions {...props} actions={now} />;
}

/** Opens the form for a new thing. @param props.edit the value of the query that opens it */
export function NewButton(props: { label: string; scope?: string; edit?: string }) {
  const { label, scope = 'admin:write', edit = 'new' } = props;
  return can(scope) ? <Button icon="plus" label={label} class="primary" onClick={() => openAside({ edit })} /> : null;
}
