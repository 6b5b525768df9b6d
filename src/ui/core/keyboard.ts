/**
 * Keys without a modifier, ignored while typing; `g` begins a sequence (`g j`). Components register their own, the
 * help lists those that work now.
 */
import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';

export interface Key {
  label: string;
  run: () => void;
  /** Works while a text is typed, too. */
  always?: boolean;
}

export type Keys = Readonly<Record<string, Key>>;

interface Group {
  title: string;
  keys: Keys;
}

/** The groups that are shown now; of two with the same key the later one gets it. */
export const groups = signal<readonly Group[]>([]);

/** Registers keys while the component is shown. @param title a heading of the help */
export function useKeys(title: string, keys: Keys): void {
  const current = useRef(keys);
  current.current = keys;
  const names = Object.entries(keys)
    .map(([name, { label }]) => `${name} ${label}`)
    .join('\n');
  // Before the browser paints: what can be seen can be pressed.
  useLayoutEffect(() => {
    const entries = Object.entries(current.current).map(([name, key]) => {
      return [name, { ...key, run: () => current.current[name]?.run() }] as const;
    });
    const group = { title, keys: Object.fromEntries(entries) };
    groups.value = [...groups.value, group];
    return () => {
      groups.value = groups.value.filter((one) => one !== group);
    };
  }, [title, names]);
}

/** How long a sequence waits for its second key, in ms. */
const SEQUENCE_MS = 1_500;

let begun = 0;

const find = (name: string): Key | undefined =>
  groups.value.findLast(({ keys }) => Object.hasOwn(keys, name))?.keys[name];

const TYPED = 'textarea, select, input:not([type="checkbox"], [type="radio"])';

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || target.matches(TYPED));

/** A button or link that is focused takes these itself. */
const isOwn = (event: KeyboardEvent): boolean =>
  /^(Enter| )$/.test(event.key) && event.target instanceof HTMLElement && !!event.target.closest('a,button,summary');

export function startKeyboard(): void {
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || isOwn(event)) return;
    // Dialogs answer Escape by themselves, and nothing behind them is to move.
    if (document.querySelector('dialog[open]')) return;
    const inSequence = Date.now() - begun < SEQUENCE_MS;
    begun = 0;
    const key = find(inSequence ? `g ${event.key}` : event.key);
    if (isTyping(event.target) && !key?.always) return;
    if (key) {
      event.preventDefault();
      key.run();
    } else if (event.key === 'g') begun = Date.now();
  });
}
