/** Forms: fields with their labels, and what went wrong beside the field that the server names. */
import { type ComponentChildren, type ComponentProps, createContext, type TargetedSubmitEvent } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { type ApiFailure, asFailure } from '../core/api';
import { type Toast, toast } from '../core/dialogs';
import { ExactNumber, parseExact } from '../core/exact';
import { navigate, openAside } from '../core/router';
import { Dialog, type DialogProps, FormEnd } from './overlays';
import { Failure, Loaded } from './page';

export const Refusal = createContext<ApiFailure | undefined>(undefined);

/** What the fields hold at first, by their names. */
const Values = createContext<object>({});

function useValue(name = ''): string | number {
  const held: unknown = Reflect.get(useContext(Values), name);
  return typeof held === 'string' || typeof held === 'number' ? held : '';
}

export interface FieldProps {
  label: string;
  /** Below the field: unit, default, what it does. */
  hint?: ComponentChildren;
  /** Names by which the server may refuse the field. */
  at?: readonly string[];
  /** What is wrong, where that is not the answer of the form. */
  error?: string | undefined;
  children: ComponentChildren;
}

export function Field({ label, hint, at = [], error = errorAt(useContext(Refusal), ...at), children }: FieldProps) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the field is a child
    <label class={`field${error ? ' wrong' : ''}`}>
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
      {error && <Wrong text={error} />}
    </label>
  );
}

const Wrong = ({ text }: { text: string }) => (
  <small class="error" role="alert">
    {text}
  </small>
);

/** A box to tick, with what it means after it. */
export function Check(props: {
  checked: boolean;
  disabled?: boolean;
  class?: string;
  onChange: (on: boolean) => void;
  children: ComponentChildren;
}) {
  const { class: kind, onChange, children, ...box } = props;
  return (
    <label {...(kind && { class: kind })}>
      <input type="checkbox" {...box} onChange={({ currentTarget }) => onChange(currentTarget.checked)} />
      {children}
    </label>
  );
}

/** Several boxes under one name, with what is wrong with them. @param props.at names in the refusal */
export function Boxes(props: { legend: string; at: readonly string[]; class: string; children: ComponentChildren }) {
  const error = errorAt(useContext(Refusal), ...props.at);
  return (
    <fieldset class={`${props.class}${error ? ' wrong' : ''}`}>
      <legend>{props.legend}</legend>
      {props.children}
      {error && <Wrong text={error} />}
    </fieldset>
  );
}

interface TextFieldProps
  extends Omit<FieldProps, 'children'>,
    Partial<Record<'required' | 'disabled' | 'readOnly' | 'autofocus' | 'spellcheck', boolean>>,
    Partial<Record<'class' | 'placeholder' | 'list' | 'autocomplete', string>>,
    Partial<Record<'min' | 'max' | 'step', string | number>>,
    Pick<ComponentProps<'input'>, 'onInput'> {
  name: string;
  /** What it holds at first; default: what the form's values have under its name. */
  value?: string | number | null | undefined;
  type?: 'number' | 'url' | 'password';
  inputMode?: 'numeric' | 'decimal' | 'text';
  maxLength?: number;
}

/** An input with its label. @param props.at default: its name */
export function TextField({ label, hint, at, error, value, ...input }: TextFieldProps) {
  const held = useValue(input.name);
  return (
    <Field label={label} hint={hint} at={at ?? [input.name]} error={error}>
      <input autocomplete="off" spellcheck={false} defaultValue={value ?? held} {...(input as object)} />
    </Field>
  );
}

export const PriorityField = (props: Pick<TextFieldProps, 'at' | 'value' | 'required' | 'placeholder'>) => (
  <TextField
    name="priority"
    label="Priority"
    hint="−100 to 100, higher first"
    {...{ type: 'number', min: -100, max: 100, step: 1 }}
    {...props}
  />
);

interface SelectProps extends Omit<FieldProps, 'children'> {
  name?: string;
  value?: string | undefined;
  options: Readonly<Record<string, string>>;
  onChange?: (value: string) => void;
}

/** A choice of one with its label. @param props.at default: its name */
export function SelectField({ name, at = name ? [name] : [], value, options, onChange, ...field }: SelectProps) {
  const held = useValue(name);
  return (
    <Field at={at} {...field}>
      <select name={name} onChange={({ currentTarget }) => onChange?.(currentTarget.value)}>
        {Object.entries(options).map(([option, text]) => (
          <option key={option} value={option} selected={option === (value ?? held)}>
            {text}
          </option>
        ))}
      </select>
    </Field>
  );
}

interface JsonFieldProps extends Omit<FieldProps, 'children' | 'hint' | 'error'> {
  name: string;
  /** What it holds at first; default: what the form's values have under its name. */
  value?: string;
  rows?: number;
  onChange?: (text: string) => void;
}

/** A text field for JSON. `parseExact` reads its text, with every number exact. @param props.at default: its name */
export function JsonField({ label, name, at = [name], value, rows = 8, onChange }: JsonFieldProps) {
  const held = useValue(name);
  const [text, setText] = useState(value ?? String(held));
  let error: string | undefined;
  let rounded: string | undefined;
  try {
    rounded = roundedIn(parseExact(text || 'null'));
  } catch (thrown) {
    error = (thrown as Error).message;
  }
  const hint =
    rounded !== undefined && `${rounded} has more digits than the server can store as a number: write it as a string.`;
  return (
    <Field label={label} at={at} error={error} hint={hint}>
      <textarea
        {...{ name, class: 'mono', rows, spellcheck: false, value: text }}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          onChange?.(currentTarget.value);
        }}
      />
    </Field>
  );
}

/** A number somewhere in a value of which JSON parsers keep fewer digits than it has. */
function roundedIn(value: unknown): string | undefined {
  if (value instanceof ExactNumber) {
    const digits = (text: string) => text.replace(/e.*$|[-.]/gi, '').replace(/^0+|0+$/g, '');
    return digits(value.source) === digits(String(Number(value.source))) ? undefined : value.source;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.values(value)
    .map(roundedIn)
    .find((found) => found !== undefined);
}

/** The server's error for a field that has one of these names, or for a part of it. */
export function errorAt(error: ApiFailure | undefined, ...names: readonly string[]): string | undefined {
  const field = String(error?.details.field ?? '');
  const isOf = (name: string) => field === name || (field.startsWith(name) && /[.[]/.test(field.charAt(name.length)));
  return names.some(isOf) ? error?.message : undefined;
}

/** What a field holds, without blanks around it; `''` where there is no such field. */
export const textIn = (form: FormData, name: string): string => String(form.get(name) ?? '').trim();

export interface FormProps {
  action: string;
  danger?: boolean;
  disabled?: boolean;
  /** What the fields hold at first, by their names. */
  values?: object | undefined;
  /** Does it; what it throws is shown. */
  onSubmit: (form: FormData) => Promise<unknown>;
  onCancel?: () => void;
  children: ComponentChildren;
}

export function Form({ action, danger, disabled, values = {}, onSubmit, onCancel, children }: FormProps) {
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
      <Values.Provider value={values}>
        <Refusal.Provider value={error}>{children}</Refusal.Provider>
      </Values.Provider>
      {error && <Failure error={error} />}
      <FormEnd {...{ action: busy ? 'Working…' : action, danger, disabled: busy || disabled, onCancel }} />
    </form>
  );
}

/** What was done, for a toast. */
interface Done extends Pick<Toast, 'text' | 'link'> {
  /** The page that follows; default: the dialog closes. */
  to?: string;
}

export interface FormDialogProps
  extends Omit<FormProps, 'onCancel' | 'onSubmit'>,
    Pick<DialogProps, 'title' | 'wide' | 'drawer'> {
  /** Does it. @returns what was done; undefined: the dialog stays */
  onSubmit: (form: FormData) => Promise<string | Done | undefined>;
  /** What the form is about; without it the dialog only says that it is being loaded. */
  of?: ComponentProps<typeof Loaded>['of'];
  /** Before the form. */
  intro?: ComponentChildren;
  onDone?: (() => void) | undefined;
  /** Default: leaves the URL that opened it. */
  onClose?: () => void;
}

const leave = () => openAside({ edit: null });

/** A form in a dialog, which closes when it is done. */
export function FormDialog(props: FormDialogProps) {
  const { title, wide, drawer, of, intro, onSubmit, onDone, onClose = leave, ...form } = props;
  const submit = async (data: FormData) => {
    const done = await onSubmit(data);
    const { text, link, to }: Partial<Done> = typeof done === 'string' ? { text: done } : (done ?? {});
    if (text !== undefined) toast(text, { link });
    onDone?.();
    if (to !== undefined) navigate(to);
    else if (text !== undefined) onClose();
  };
  return (
    <Dialog {...{ title, wide, drawer, onClose }}>
      {intro}
      {of && of.data === undefined ? (
        <Loaded of={of}>{() => null}</Loaded>
      ) : (
        <Form {...form} onSubmit={submit} onCancel={onClose} />
      )}
    </Dialog>
  );
}
