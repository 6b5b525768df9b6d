/** What stands around a table: filters above it, pages below it. */
import type { ComponentChildren, ComponentType } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { useGet } from '../core/api';
import { number } from '../core/format';
import { pageNumber, query, setQuery, withQuery } from '../core/router';
import { Button } from './button';
import { Icon } from './icon';

export function Filters({ children, kind = '' }: { children: ComponentChildren; kind?: string }) {
  return <search class={`filters ${kind}`}>{children}</search>;
}

const TYPING_MS = 300;

export function TextFilter({ name, label, placeholder }: { name: string; label: string; placeholder?: string }) {
  const value = query(name);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current && field.current.value !== value && document.activeElement !== field.current)
      field.current.value = value;
  }, [value]);
  const write = (text: string, replace: boolean) => {
    clearTimeout(timer.current);
    setQuery({ [name]: text.trim() }, { replace });
  };
  return (
    <label class="field inline">
      <span class="hidden">{label}</span>
      <input
        ref={field}
        type="search"
        defaultValue={value}
        placeholder={placeholder ?? label}
        onInput={({ currentTarget }) => {
          clearTimeout(timer.current);
          timer.current = setTimeout(() => write(currentTarget.value, true), TYPING_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter') write(event.currentTarget.value, false);
        }}
      />
    </label>
  );
}

export type Options = Readonly<Record<string, string>>;

export const named = (values: readonly string[]): Options => Object.fromEntries(values.map((value) => [value, value]));

/** A choice of one that filters; the first option is "all". */
export function SelectFilter(props: {
  name: string;
  label: string;
  all: string;
  options: Options;
  /** It leaves no entry in the history. */
  replace?: boolean;
}) {
  const { name, label, all, options, replace = false } = props;
  const value = query(name);
  return (
    <label class="field inline">
      <span class="hidden">{label}</span>
      <select value={value} onChange={({ currentTarget }) => setQuery({ [name]: currentTarget.value }, { replace })}>
        <option value="">{all}</option>
        {value !== '' && !Object.hasOwn(options, value) && <option value={value}>{value}</option>}
        {Object.entries(options).map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

export function QueueFilter() {
  const queues = useGet<{ items: readonly { name: string }[] }>('admin/queues', { per_page: 100 });
  return (
    <SelectFilter
      name="queue"
      label="Queue"
      all="All queues"
      options={named((queues.data?.items ?? []).map(({ name }) => name))}
    />
  );
}

/** Active filters, as chips that remove them. @param names with their labels @param values with texts, by name */
export function FilterChips({ names, values = {} }: { names: Options; values?: Readonly<Record<string, Options>> }) {
  const set = Object.entries(names).filter(([name]) => query(name) !== '');
  if (set.length === 0) return null;
  return (
    <div class="chips">
      {set.map(([name, label]) => (
        <a
          key={name}
          class="chip"
          href={withQuery({ [name]: null })}
          aria-label={`Remove the filter ${values[name]?.[query(name)] ?? `${label} ${query(name)}`}`}
        >
          {values[name]?.[query(name)] ?? (
            <>
              {label}: <bdi>{query(name)}</bdi>
            </>
          )}
          <Icon name="close" size={12} />
        </a>
      ))}
      {set.length > 1 && (
        <a class="chip" href={withQuery(Object.fromEntries(set.map(([name]) => [name, null])))}>
          Clear all
        </a>
      )}
    </div>
  );
}

export interface Filter {
  name: string;
  label: string;
  /** What its chip calls it; default: its label; null: it has none. */
  chip?: string | null;
  placeholder?: string;
  /** Of a choice: the option for no choice, and the others. */
  choice?: readonly [all: string, options: Options];
  /** A field of its own; null: only links set it. */
  field?: ComponentType | null;
}

/** The filters of a list, and chips for those that are set. @param props.children stand after the fields */
export function FilterBar({ of, children }: { of: readonly Filter[]; children?: ComponentChildren }) {
  const chips = of.flatMap(({ name, label, chip = label }) => (chip === null ? [] : [[name, chip]]));
  return (
    <>
      <Filters>
        {of.map(({ chip: _, choice, field: Field, ...texts }) => {
          if (Field !== undefined) return Field && <Field key={texts.name} />;
          if (!choice) return <TextFilter key={texts.name} {...texts} />;
          return <SelectFilter key={texts.name} {...texts} all={choice[0]} options={choice[1]} />;
        })}
        {children}
      </Filters>
      <FilterChips names={Object.fromEntries(chips)} />
    </>
  );
}

export interface PagerProps {
  total: number;
  perPage: number;
  /** The total is a lower bound. */
  atLeast?: boolean;
  hasMore?: boolean | undefined;
}

/** "1–50 of 1,234" with links to the pages before and after. */
export function Pager({ total, perPage, atLeast, hasMore }: PagerProps) {
  const page = pageNumber();
  const from = (page - 1) * perPage;
  const more = hasMore ?? total > from + perPage;
  if (page === 1 && !more) return null;
  return (
    <nav class="pager" aria-label="Pages">
      <span>
        {number(from + 1)}–{number(Math.max(from + 1, Math.min(total, from + perPage)))} of {number(total)}
        {atLeast && ' or more'}
      </span>
      <PageLink page={page > 1 ? page - 1 : undefined} label="Previous page" icon="back" />
      <PageLink page={more ? page + 1 : undefined} label="Next page" icon="next" />
    </nav>
  );
}

function PageLink({ page, label, icon }: { page: number | undefined; label: string; icon: 'back' | 'next' }) {
  if (page === undefined) {
    return (
      <span class="icon-button off" aria-hidden="true">
        <Icon name={icon} />
      </span>
    );
  }
  return (
    <a class="icon-button" href={withQuery({ page: page === 1 ? null : page })} aria-label={label}>
      <Icon name={icon} />
    </a>
  );
}

/** "12 newer": what came meanwhile is shown when it is asked for, so that nothing moves under the pointer. */
export const Newer = ({ count, onShow }: { count: number; onShow: () => void }) => (
  <div class="newer" aria-live="polite">
    {count > 0 && <Button icon="up" size={12} label={`${number(count)} newer`} onClick={onShow} />}
  </div>
);
