/** What lies over a page: dialogs, a drawer, toasts. All dialogs are native, which handle the focus. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { dismiss, question, toasts } from '../core/dialogs';
import { openAside } from '../core/router';
import { Button } from './button';
import { Icon } from './icon';

export interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  /** At the side, with the page to be seen beside it. */
  drawer?: boolean | undefined;
  wide?: boolean | undefined;
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
          <Button class="icon-button" icon="close" size={16} aria-label="Close" onClick={onClose} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A drawer whose open state is in the URL. @param name the query parameter that opens it */
export function Drawer(props: { name?: string; title: string; children: ComponentChildren }) {
  const { name = 'open', ...dialog } = props;
  return <Dialog {...dialog} drawer onClose={() => openAside({ [name]: null })} />;
}

export const FormEnd = (props: {
  action: string;
  danger?: boolean | undefined;
  disabled?: boolean | undefined;
  onCancel?: (() => void) | undefined;
}) => (
  <footer>
    {props.onCancel && <Button label="Cancel" onClick={props.onCancel} />}
    <button type="submit" class={props.danger ? 'danger' : 'primary'} disabled={props.disabled}>
      {props.action}
    </button>
  </footer>
);

/** Asks for a confirmation. @param props.typed what must be typed first, as it cannot be undone; undefined: nothing */
export function Confirm(props: {
  action: string;
  danger?: boolean | undefined;
  disabled?: boolean;
  typed?: string | undefined;
  onAnswer: (yes: boolean) => void;
  children: ComponentChildren;
}) {
  const { typed: wanted, disabled, onAnswer, children, ...end } = props;
  const [typed, setTyped] = useState('');
  const isNumber = wanted !== undefined && /^\d+$/.test(wanted);
  const isTyped = wanted === undefined || (isNumber ? typed.replace(/[\s,.]/g, '') : typed) === wanted;
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isTyped && !disabled) onAnswer(true);
      }}
    >
      {children}
      {wanted !== undefined && (
        <label class="field">
          <span>
            Type <code>{wanted}</code> to confirm
          </span>
          <input
            {...{ value: typed, autocomplete: 'off', inputMode: isNumber ? 'numeric' : 'text' }}
            onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          />
        </label>
      )}
      <FormEnd {...end} disabled={disabled || !isTyped} onCancel={() => onAnswer(false)} />
    </form>
  );
}

export function Questions() {
  const asked = question.value;
  if (!asked) return null;
  const { title, text, answer, ...confirm } = asked;
  return (
    <Dialog title={title} onClose={() => answer(false)}>
      <Confirm {...confirm} onAnswer={answer}>
        {text && <p>{text}</p>}
      </Confirm>
    </Dialog>
  );
}

export const Toasts = () => (
  <div class="toasts" aria-live="polite">
    {toasts.value.map(({ id, kind, text, hint, link }) => (
      <div key={id} class={`toast ${kind}`}>
        <Icon name={kind === 'done' ? 'check' : 'failures'} />
        <div>
          <bdi>{text}</bdi>
          {hint && <p>{hint}</p>}
          {link && <a href={link.href}>{link.text}</a>}
        </div>
        <Button class="icon-button" icon="close" aria-label="Dismiss" onClick={() => dismiss(id)} />
      </div>
    ))}
  </div>
);
