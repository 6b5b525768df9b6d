/** Shows data from outside, as text only. Parts are drawn when opened and long texts cut, so pages stay quick. */
import type { ComponentProps } from 'preact';
import { useState } from 'preact/hooks';
import { ExactNumber, stringifyExact } from '../core/exact';
import { bytes, number } from '../core/format';
import { Button } from './button';
import { Dialog } from './overlays';
import { Section } from './page';
import { Copy } from './text';

/** Characters of a text, and members of a list or object, that are shown at first. */
const SHOWN_TEXT = 400;
const SHOWN_MEMBERS = 100;
/** Characters that are added to a text at a time. */
const MORE_TEXT = 50_000;

export interface JsonProps {
  value: unknown;
  /** What it is, for the button that copies it: "arguments". */
  label: string;
  /** Levels that are open at first. */
  open?: number;
}

export const Json = ({ value, label, open = 1 }: JsonProps) => (
  <div class="json">
    <Copy text={stringifyExact(value)} label={label} />
    <Value value={value} open={open} />
  </div>
);

const BRIEF = 140;

export function JsonBrief({ value, label }: Omit<JsonProps, 'open'>) {
  const text = stringifyExact(value, 0);
  if (text.length > BRIEF) return <Json value={value} label={label} open={0} />;
  return (
    <code class="faint">
      <bdi class="foreign">{text}</bdi>
    </code>
  );
}

function Value({ value, open }: { value: unknown; open: number }) {
  if (typeof value === 'string') return <Text text={value} />;
  if (value instanceof ExactNumber) return <span class="json-number">{value.source}</span>;
  if (typeof value === 'object' && value !== null) return <Members value={value} open={open} />;
  return <span class={`json-${typeof value}`}>{String(value)}</span>;
}

function Text({ text }: { text: string }) {
  const [shown, setShown] = useState(SHOWN_TEXT);
  const rest = text.length - shown;
  return (
    <span class="json-string">
      <bdi>{JSON.stringify(rest > 0 ? text.slice(0, shown) : text)}</bdi>
      {rest > 0 && (
        <Button class="link" onClick={() => setShown(shown + MORE_TEXT)}>
          … {bytes(rest)} more
        </Button>
      )}
    </span>
  );
}

function Members({ value, open }: { value: object; open: number }) {
  const isList = Array.isArray(value);
  // Own members only: a member named __proto__ is one as any other.
  const names = Object.keys(value);
  const [isOpen, setOpen] = useState(open > 0);
  const [shown, setShown] = useState(SHOWN_MEMBERS);
  const [first, last] = isList ? ['[', ']'] : ['{', '}'];
  if (names.length === 0) return <span>{first + last}</span>;
  return (
    <>
      <Button class="json-fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        {first}
        {!isOpen && (
          <span class="faint">
            {number(names.length)} {isList ? 'item' : 'member'}
            {names.length === 1 ? '' : 's'}
          </span>
        )}
        {!isOpen && last}
      </Button>
      {isOpen && (
        <>
          <ul>
            {names.slice(0, shown).map((name) => (
              <li key={name}>
                {!isList && (
                  <>
                    <bdi class="json-name">{JSON.stringify(name)}</bdi>
                    {': '}
                  </>
                )}
                <Value value={Object.getOwnPropertyDescriptor(value, name)?.value} open={open - 1} />
              </li>
            ))}
            {names.length > shown && (
              <li>
                <Button class="link" onClick={() => setShown(shown + 10 * SHOWN_MEMBERS)}>
                  … {number(names.length - shown)} more
                </Button>
              </li>
            )}
          </ul>
          <span>{last}</span>
        </>
      )}
    </>
  );
}

export const Code = ({ text, label }: { text: string; label: string }) => (
  <div class="code">
    <Copy text={text} label={label} />
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without a pointer it is scrolled by keys */}
    <pre tabIndex={0}>
      <bdi>{text}</bdi>
    </pre>
  </div>
);

/** A secret, the one time that it is shown. @param props.name a heading */
export const Secret = ({ text, label, name }: { text: string; label: string; name?: string }) => (
  <div class="card secret" role="status">
    {name && <strong>{name}</strong>}
    <Code text={text} label={label} />
    <p class="faint">Copy it now: it is not shown again.</p>
  </div>
);

type SecretProps = ComponentProps<typeof Secret> & Pick<ComponentProps<typeof Dialog>, 'title' | 'onClose'>;

export const SecretDialog = ({ title, onClose, ...secret }: SecretProps) => (
  <Dialog title={title} wide onClose={onClose}>
    <Secret {...secret} />
    <div class="actions">
      <Button label="I have copied it" class="primary" onClick={onClose} />
    </div>
  </Dialog>
);

/** A part of a page that is JSON. @param props.value undefined: there is no such part */
export function JsonSection({ title, value, open = 2 }: { title: string; value: unknown; open?: number }) {
  if (value === undefined || value === null) return null;
  return (
    <Section title={title}>
      <Json value={value} label={title.toLowerCase()} open={open} />
    </Section>
  );
}
