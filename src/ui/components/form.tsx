/** Forms: fields with their labels, and what went wrong beside the field that the server names. */
import type { ComponentChildren, TargetedSubmitEvent } from 'preact';
import { useState } from 'preact/hooks';
import { type ApiFailure, asFailure } from '../core/api';
import { ExactNumber, parseExact } from '../core/exact';
import { Failure } from './state';

export interface FieldProps {
  label: string;
  /** Below the field: unit, default, what it does. */
  hint?: ComponentChildren;
  /** What is wrong. */
  error?: string | undefined;
  /** The field itself. */
  children: ComponentChildren;
}

/** A label around an `<input>`, `<select>` or `<textarea>`. */
export function Field({ label, hint, error, children }: FieldProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the field is a child
    <label class={`field${error ? ' wrong' : ''}`}>
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
      {error && (
        <small class="error" role="alert">
          {error}
        </small>
      )}
    </label>
  );
}

/** A text field for JSON. Its value is kept as text; `parseExact` reads it, with every number exact. */
export function JsonField(props: {
  label: string;
  value: string;
  onChange: (text: string) => void;
  rows?: number;
  /** What the server says of it. */
  error?: string | undefined;
}) {
  let { error } = props;
  let rounded: string | undefined;
  try {
    rounded = roundedIn(parseExact(props.value || 'null'));
  } catch (thrown) {
    error = (thrown as Error).message;
  }
  return (
    <Field
      label={props.label}
      error={error}
      hint={
        rounded !== undefined &&
        `${rounded} has more digits than the server can store as a number: write it as a string.`
      }
    >
      <textarea
        class="mono"
        rows={props.rows ?? 8}
        spellcheck={false}
        value={props.value}
        onInput={({ currentTarget }) => props.onChange(currentTarget.value)}
      />
    </Field>
  );
}

/** A number somewhere in a value of which JSON parsers keep fewer digits than it has. */
function roundedIn(value: unknown): string | undefined {
  if (value instanceof ExactNumber) {
    const digits = (text: string) =>
      text
        .replace(/e.*$/i, '')
        .replace(/[-.]/g, '')
        .replace(/^0+|0+$/g, '');
    return digits(value.source) === digits(String(Number(value.source))) ? undefined : value.source;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const found = roundedIn(inner);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What the server says of a field that has one of these names, or of a part of it. */
export function errorAt(error: ApiFailure | undefined, ...names: readonly string[]): string | undefined {
  const field = String(error?.details.field ?? '');
  const isOf = (name: string) => field === name || (field.startsWith(name) && /[.[]/.test(field.charAt(name.length)));
  return names.some(isOf) ? error?.message : undefined;
}

/** What a field holds, without blanks around it; `''` where there is no such field. */
export function textIn(form: FormData, name: string): string {
  return String(form.get(name) ?? '').trim();
}

export interface FormProps {
  /** What the button says. */
  action: string;
  danger?: boolean;
  disabled?: boolean;
  /** Does it; what it throws is shown. */
  onSubmit: (form: FormData) => Promise<unknown>;
  onCancel?: () => void;
  children: ComponentChildren | ((error: ApiFailure | undefined) => ComponentChildren);
}

/** A form whose button waits for the answer. */
export function Form({ action, danger, disabled, onSubmit, onCancel, children }: FormProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<ApiFailure>();
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    try {
      await onSubmit(new FormData(event.currentTarget));
    } catch (thrown) {
      setError(asFailure(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={submit}>
      {typeof children === 'function' ? children(error) : children}
      {error && <Failure error={error} />}
      <footer>
        {onCancel && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
        <button type="submit" class={danger ? 'danger' : 'primary'} disabled={busy || disabled}>
          {busy ? 'Working…' : action}
        </button>
      </footer>
    </form>
  );
}
