import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import { query, withQuery } from '../core/router';
import { Icon } from './icon';
import { Count } from './text';

export { Empty, type EmptyProps, Failure, LiveRefused, Loaded, Skeleton } from './state';

export interface PageHeadProps {
  title: ComponentChildren;
  /** The browser's title, where `title` is more than a text. */
  name?: string;
  /** Next to the heading, so that it is not read as a part of it. */
  badge?: ComponentChildren;
  sub?: ComponentChildren;
  /** Where the page belongs: a link before the title. */
  up?: { href: string; text: string };
  children?: ComponentChildren;
}

export function PageHead({ title, name, badge, sub, up, children }: PageHeadProps) {
  const text = name ?? (typeof title === 'string' ? title : undefined);
  useEffect(() => {
    if (text !== undefined) document.title = `${text} · Tocsin`;
  }, [text]);
  return (
    <div class="page-head">
      <div>
        {up && (
          <a class="up" href={up.href}>
            <Icon name="back" size={12} />
            {up.text}
          </a>
        )}
        <div class="title">
          <h1 tabIndex={-1}>{title}</h1>
          {badge}
        </div>
        {sub && <p class="sub">{sub}</p>}
      </div>
      {children && <div class="actions">{children}</div>}
    </div>
  );
}

export const Section = (props: { title: string; actions?: ComponentChildren; children: ComponentChildren }) => (
  <section class="section">
    <header>
      <h2>{props.title}</h2>
      {props.actions}
    </header>
    {props.children}
  </section>
);

interface StatProps {
  label: string;
  /** A number is shown in short. */
  value: ComponentChildren;
  href?: string;
  tone?: string;
  sub?: ComponentChildren;
}

/** One number with its name; a row of them stands in `<div class="stats">`. */
export function Stat({ label, value, href, tone = '', sub }: StatProps) {
  const Frame = href ? 'a' : 'div';
  return (
    <Frame class="stat" {...(href && { href })}>
      <span class="label">{label}</span>
      <span class={`value ${tone}`}>{typeof value === 'number' ? <Count value={value} /> : value}</span>
      {sub && <span class="faint">{sub}</span>}
    </Frame>
  );
}

/** Names and values below each other. Entries without a value are left out. */
export const Facts = ({ of: entries }: { of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl class="facts">
    {entries
      .filter(([, value]) => value !== undefined && value !== null && value !== false)
      .map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
  </dl>
);

/** A small table of known rows. @param props.head labels @param props.end right-align from this column on */
export function PlainTable(props: {
  label: string;
  head: readonly string[];
  rows: readonly (readonly ComponentChildren[])[];
  end: number;
  scrolls?: boolean;
  class?: string;
}) {
  const { label, head, rows, end, scrolls, class: style = '' } = props;
  const kind = (index: number) => (index >= end ? 'end' : '');
  return (
    <div class={`table-frame${scrolls ? ' scrolls' : ''}`}>
      <table class={`table plain ${style}`} aria-label={label}>
        <thead>
          <tr>
            {head.map((text, index) => (
              <th key={text} scope="col" class={kind(index)}>
                {text}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((cells, row) => (
            <tr key={row}>
              {cells.map((cell, index) => (
                <td key={head[index]} class={kind(index)} data-label={head[index]}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export interface Tab {
  id: string;
  label: string;
  count?: number | string | undefined;
}

/** Tabs, as links: which one is open stands in the URL (`?tab=`). The first is meant when it does not. */
export function Tabs({ tabs, name = 'tab' }: { tabs: readonly Tab[]; name?: string }) {
  const open = openTab(tabs, name);
  const row = useRef<HTMLElement>(null);
  // Counts come later and widen the row.
  const isCounted = tabs.some(({ count }) => count !== undefined);
  // On a narrow screen the row may be wider than the window: scroll the open tab into view, not the page.
  useLayoutEffect(() => {
    const [nav, link] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')];
    if (nav && link) nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }, [open, isCounted]);
  return (
    <nav class="tabs" aria-label="Parts of this page" ref={row}>
      {tabs.map(({ id, label, count }, index) => (
        <a
          key={id}
          href={withQuery({ [name]: index === 0 ? null : id })}
          aria-current={id === open ? 'page' : undefined}
        >
          {label}
          {count !== undefined && <span class="count"> {count}</span>}
        </a>
      ))}
    </nav>
  );
}

export function openTab(tabs: readonly Tab[], name = 'tab'): string {
  const asked = query(name);
  return tabs.find(({ id }) => id === asked)?.id ?? tabs[0]?.id ?? '';
}
