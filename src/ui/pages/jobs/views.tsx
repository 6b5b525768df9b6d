/** Filters that were given a name. They stay in this browser; to share one, share its URL. */
import { useState } from 'preact/hooks';
import { FormDialog, TextField, textIn } from '../../components/form';
import { Button } from '../../components/text';
import { href, url } from '../../core/router';

const KEY = 'tocsin.views.jobs';
const MOST = 20;

interface View {
  name: string;
  /** The query of the URL, from its question mark on. */
  search: string;
}

function stored(): readonly View[] {
  try {
    const views = JSON.parse(localStorage.getItem(KEY) ?? '[]') as View[];
    return views.filter(({ name, search }) => typeof name === 'string' && typeof search === 'string').slice(0, MOST);
  } catch {
    return [];
  }
}

function currentSearch(): string {
  const { searchParams } = new URL(url.value);
  for (const name of ['page', 'enqueue']) searchParams.delete(name);
  return searchParams.size > 0 ? `?${searchParams}` : '';
}

export function Views() {
  const [views, setViews] = useState(stored);
  const [naming, setNaming] = useState(false);
  const search = currentSearch();
  const open = views.find((view) => view.search === search);
  const keep = (next: readonly View[]) => {
    setViews(next);
    localStorage.setItem(KEY, JSON.stringify(next));
  };
  const save = async (form: FormData) => {
    const name = textIn(form, 'name');
    keep([...views.filter((view) => view.name !== name), { name, search }].slice(-MOST));
    return `${name} is saved in this browser.`;
  };
  return (
    <>
      {views.length > 0 && (
        <nav class="views" aria-label="Saved views">
          {views.map(({ name, search: to }) => (
            <a key={name} href={href('jobs') + to} aria-current={to === search ? 'page' : undefined}>
              <bdi>{name}</bdi>
            </a>
          ))}
        </nav>
      )}
      {open ? (
        <Button icon="trash" label="Delete view" onClick={() => keep(views.filter((view) => view !== open))} />
      ) : (
        search !== '' && <Button icon="filter" label="Save view" onClick={() => setNaming(true)} />
      )}
      {naming && (
        <FormDialog title="Save this view" action="Save" onSubmit={save} onClose={() => setNaming(false)}>
          <TextField
            name="name"
            label="Name"
            hint="The view is saved in this browser. To share it, share the URL."
            required
            maxLength={40}
          />
        </FormDialog>
      )}
    </>
  );
}
