import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { ApiFailure, Resource } from '../core/api';
import { refusal } from '../core/live';
import { query, withQuery } from '../core/router';
import { Button } from './button';
import { Icon, type IconName } from './icon';
import { Count } from './text';

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

export function Section(props: { title: string; actions?: ComponentChildren; children: ComponentChildren }) {
  return (
    <section class="section">
      <header>
        <h2>{props.title}</h2>
        {props.actions}
      </header>
      {props.children}
    </section>
  );
}

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
export function Facts({ of: entries }: { of: readonly (readonly [string, ComponentChildren])[] }) {
  return (
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
  // On a narrow screen the row may be wider than the window: scroll the open tab into view, not the page.
  useLayoutEffect(() => {
    const [nav, link] = [row.current, row.current?.querySelector<HTMLElement>('[aria-current]')];
    if (nav && link) nav.scrollLeft = link.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2;
  }, [open]);
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

/** Grey bars in the place of what is being loaded. @param rows how many, about as many as will come */
export function Skeleton({ rows = 6, height }: { rows?: number; height?: number }) {
  return (
    <div class="skeleton" role="status" aria-label="Loading">
      {Array.from({ length: rows }, (_, index) => (
        <i key={index} style={height ? { height: `${height}px` } : {}} />
      ))}
    </div>
  );
}

export interface EmptyProps {
  icon?: IconName;
  title: string;
  /** What would make something appear here: a text, or children. */
  text?: string;
  children?: ComponentChildren;
}

export function Empty({ icon = 'queues', title, text, children = text }: EmptyProps) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      {children && <div class="text">{children}</div>}
    </div>
  );
}

export function Failure({ error, retry }: { error: ApiFailure; retry?: (() => void) | undefined }) {
  return (
    <div class="failure" role="alert">
      <Icon name="failures" size={20} />
      <div>
        <strong>{error.message}</strong>
        {error.hint && <p>{error.hint}</p>}
        {error.requestId && <p class="faint">Request {error.requestId}</p>}
      </div>
      {retry && <Button label="Try again" onClick={retry} />}
    </div>
  );
}

/** Stands above what should change by itself, where the server refuses to. */
export function LiveRefused() {
  return refusal.value === '' ? null : <p class="note amber">Live updates are off: {refusal.value}</p>;
}

/** A resource once it is there; before that a skeleton, and what went wrong. */
export function Loaded<T>(props: {
  of: Resource<T>;
  children: (data: T) => ComponentChildren;
  loading?: ComponentChildren;
}) {
  const { of: resource, children, loading } = props;
  return (
    <>
      {resource.error && <Failure error={resource.error} retry={resource.reload} />}
      {resource.data !== undefined ? children(resource.data) : !resource.error && (loading ?? <Skeleton />)}
    </>
  );
}
