/**
 * What lies over a page: dialogs, a drawer, toasts. All dialogs are the browser's own, which keep and give back the
 * focus.
 */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { dismiss, question, toasts } from '../core/dialogs';
import { openAside } from '../core/router';
import { Icon } from './icon';
import { Button } from './text';

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** At the side, with the page to be seen beside it. */
  drawer?: boolean;
  wide?: boolean;
}

/** A dialog that is open as long as it is drawn. */
export function Dialog({ title, onClose, children, drawer, wide }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    // What must be filled in, rather than the button that closes it.
    if (!drawer) dialog.current?.querySelector<HTMLElement>('form :is(input, textarea, select)')?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape does the same
    <dialog
      ref={dialog}
      class={drawer ? 'drawer' : wide ? 'wide' : ''}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-body">
        <header>
          <h2 id={heading}>{title}</h2>
          <Button class="icon-button" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </Button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/**
 * A drawer whose being open stands in the URL. @param name the member of the query that opens it, removed when it
 * closes
 */
export function Drawer({
  name = 'open',
  title,
  children,
}: {
  name?: string;
  title: string;
  children: ComponentChildren;
}) {
  return (
    <Dialog title={title} drawer onClose={() => openAside({ [name]: null })}>
      {children}
    </Dialog>
  );
}

/** What {@link confirm} asks. */
export function Questions() {
  const asked = question.value;
  const [typed, setTyped] = useState('');
  if (!asked) return null;
  const answer = (yes: boolean) => {
    setTyped('');
    asked.answer(yes);
  };
  return (
    <Dialog title={asked.title} onClose={() => answer(false)}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          answer(true);
        }}
      >
        {asked.text && <p>{asked.text}</p>}
        {asked.typed !== undefined && (
          <label class="field">
            <span>
              Type <code>{asked.typed}</code> to confirm
            </span>
            <input value={typed} onInput={({ currentTarget }) => setTyped(currentTarget.value)} autocomplete="off" />
          </label>
        )}
        <footer>
          <Button label="Cancel" onClick={() => answer(false)} />
          <button
            type="submit"
            class={asked.danger ? 'danger' : 'primary'}
            disabled={asked.typed !== undefined && typed !== asked.typed}
          >
            {asked.action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

export function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {toasts.value.map(({ id, kind, text, hint, link }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === 'done' ? 'check' : 'failures'} />
          <div>
            <bdi>{text}</bdi>
            {hint && <p>{hint}</p>}
            {link && <a href={link.href}>{link.text}</a>}
          </div>
          <Button class="icon-button" aria-label="Dismiss" onClick={() => dismiss(id)}>
            <Icon name="close" size={14} />
          </Button>
        </div>
      ))}
    </div>
  );
}
