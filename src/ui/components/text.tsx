import { type ComponentChildren, Fragment } from 'preact';
import { useState } from 'preact/hooks';
import type { JobState } from '../../job/states';
import { useNow } from '../core/clock';
import { absolute, duration, number, readable, relative, short } from '../core/format';
import type { Further } from '../core/further';
import { href, segment } from '../core/router';
import { Button, type ButtonProps } from './button';
import { Icon, type IconName } from './icon';

export { Button } from './button';

/** A link that looks like a button. */
export const LinkButton = ({ to, icon, label }: Pick<ButtonProps, 'icon' | 'label'> & { to: string }) => (
  <a class="button" href={to}>
    {icon && <Icon name={icon} size={14} />}
    {label}
  </a>
);

/** Looks further. @param props.of what {@link useFurther} returns */
export function FurtherButton({ of: { busy, look }, label }: { of: Pick<Further, 'busy' | 'look'>; label: string }) {
  return <Button label={busy ? 'Searching…' : label} class="link" disabled={busy} onClick={look} />;
}

/** A text with parts that are more than text: sentence`Ends ${<Time at={at} />}.` */
export const sentence = (texts: TemplateStringsArray, ...parts: readonly ComponentChildren[]): ComponentChildren =>
  texts.map((text, index) => [text, parts[index]]);

export const None = () => <span class="faint">–</span>;

/** "5 s ago"; both zones when it is pointed at. @param at RFC 3339 or epoch ms @param before text before it */
export function Time({ at, before = '' }: { at: string | number | null | undefined; before?: string }) {
  const now = useNow();
  if (at === null || at === undefined) return <None />;
  const ms = typeof at === 'number' ? at : Date.parse(at);
  return (
    <>
      {before}
      <time dateTime={new Date(ms).toISOString()} title={absolute(ms)}>
        {relative(ms, now)}
      </time>
    </>
  );
}

/** How long until then: 1 d 23 h. @param until RFC 3339 */
export function Left({ until }: { until: string }) {
  const ms = Date.parse(until);
  return <Length ms={ms - useNow()} at={ms} />;
}

const Length = ({ ms, at }: { ms: number; at: number }) => (
  <time title={absolute(at)}>{duration(Math.max(0, Math.floor(ms / 1_000) * 1_000))}</time>
);

/** A sentence of the server, with its moments in the zone of this browser. */
export const Told = ({ text }: { text: string }) => <Foreign>{readable(text, useNow())}</Foreign>;

/** How long something has lasted, and continues. @param since RFC 3339 or epoch ms */
export function Age({ since }: { since: string | number | null | undefined }) {
  const now = useNow();
  if (since === null || since === undefined) return <None />;
  const ms = typeof since === 'number' ? since : Date.parse(since);
  return <Length ms={now - ms} at={ms} />;
}

/** @param ms milliseconds */
export function Duration({ ms }: { ms: number | null | undefined }) {
  if (ms === null || ms === undefined) return <None />;
  return <span title={`${number(ms)} ms`}>{duration(ms)}</span>;
}

/** A count, in short where it is large; all digits when it is pointed at. */
export function Count({ value, exact }: { value: number | null | undefined; exact?: boolean }) {
  if (value === null || value === undefined) return <None />;
  const text = exact ? number(value) : short(value);
  return (
    <span class={value === 0 ? 'num zero' : 'num'} {...(text !== number(value) && { title: number(value) })}>
      {text}
    </span>
  );
}

export const CountOf = ({ value, most }: { value: number; most: number | null | undefined }) => (
  <span class="num">
    <Count value={value} />
    {most !== null && most !== undefined && <span class="faint"> / {number(most)}</span>}
  </span>
);

export function Copy({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await writeClipboard(text);
    setDone(true);
    setTimeout(() => setDone(false), 1_500);
  };
  return (
    <button type="button" class="icon-button copy" aria-label={done ? 'Copied' : `Copy ${label}`} onClick={copy}>
      <Icon name={done ? 'check' : 'copy'} size={14} />
    </button>
  );
}

/** Also where the page came over plain HTTP, and browsers offer no clipboard. */
export async function writeClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

export const Id = ({ text, label = 'id' }: { text: string; label?: string }) => (
  <span class="mono">
    <Foreign>{text}</Foreign> <Copy text={text} label={label} />
  </span>
);

/** An id as a link, with a button that copies it. Ids differ in their ends; the title has all of it. */
export const IdLink = ({ id, to }: { id: string; to: string }) => (
  <span class="id">
    <a href={to} title={id}>
      <span class="mono">{id.length > 16 ? `${id.slice(0, 8)}…${id.slice(-6)}` : id}</span>
    </a>
    <Copy text={id} label="id" />
  </span>
);

export const JobLink = ({ id }: { id: string }) => <IdLink id={id} to={href(`jobs/${segment(id)}`)} />;

/** A text from outside as a link; without an address, the text alone. */
export function Link(props: { to?: string | undefined; text: string; class?: string; title?: string }) {
  const { to, text, ...attributes } = props;
  return (
    <a {...(to !== undefined && { href: to })} {...attributes}>
      <Foreign>{text}</Foreign>
    </a>
  );
}

export const QueueLink = ({ name }: { name: string }) => <Link to={href(`queues/${segment(name)}`)} text={name} />;

/** Names with commas between them. @param props.show one of them */
export const Names = ({ of: names, show }: { of: readonly string[]; show: (name: string) => ComponentChildren }) =>
  names.map((name, index) => (
    <span key={name}>
      {index > 0 && ', '}
      {show(name)}
    </span>
  ));

/** Short words of the API beside each other, such as scopes. */
export const Words = ({ of: words, children }: { of: readonly string[]; children?: ComponentChildren }) => (
  <span class="words">
    {words.map((word) => (
      <code key={word}>{word}</code>
    ))}
    {children}
  </span>
);

/** Text that came from outside, kept apart from the direction of the text around it. */
export const Foreign = ({ children, before = '' }: { children: string; before?: string }) => (
  <>
    {before}
    <bdi class="foreign">{breakable(children)}</bdi>
  </>
);

/** Characters of the longest word that stays whole. */
const WHOLE = 24;

/** Where a long word may continue in the next line: an address, a path, a host. */
const JOINTS = /(?<=[./:_@?&=,])(?=[^./:_@?&=,])/;

/** Lets long words break, preferably at their joints; columns are as wide as their other words. */
function breakable(text: string): ComponentChildren {
  if (!text.split(/\s/).some(({ length }) => length > WHOLE)) return text;
  return text.split(/(\s+)/).map((word) => {
    if (word.length <= WHOLE) return word;
    return word.split(JOINTS).map((part, index) => (
      <Fragment key={index}>
        {index > 0 && <wbr />}
        {part.length > WHOLE ? <span class="long">{part}</span> : part}
      </Fragment>
    ));
  });
}

export type Tone = 'neutral' | 'blue' | 'violet' | 'green' | 'amber' | 'red';

const STATES: Readonly<Record<JobState, Look>> = {
  pending: ['neutral', 'pause'],
  scheduled: ['neutral', 'waiting'],
  available: ['blue', 'available'],
  active: ['violet', 'active'],
  retryable: ['amber', 'retry'],
  completed: ['green', 'completed'],
  cancelled: ['neutral', 'cancelled'],
  discarded: ['red', 'discarded'],
};

export const JOB_STATES = Object.keys(STATES) as readonly JobState[];

export const toneOf = (state: string): Tone => STATES[state as JobState]?.[0] ?? 'neutral';

export type Look = readonly [tone: Tone, icon?: IconName | undefined];

export const GOOD: Look = ['green', 'completed'];
export const BAD: Look = ['red', 'discarded'];
const NEUTRAL: Look = ['neutral'];

export function StateBadge({ state }: { state: string }) {
  return <Badge look={STATES[state as JobState] ?? ['neutral', 'available']} text={state} />;
}

/** A word with a colour: the mode of a queue, the answer of a webhook. */
export const Badge = ({ look: [tone, icon] = NEUTRAL, text }: { look?: Look; text: ComponentChildren }) => (
  <span class={`badge ${tone}`}>
    {icon && <Icon name={icon} size={12} />}
    {text}
  </span>
);

export function Bar({ value, label }: { value: number; label: string }) {
  return <progress value={Math.max(0, Math.min(1, value))} aria-label={label} />;
}
