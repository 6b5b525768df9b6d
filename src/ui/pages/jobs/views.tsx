/** Filters that were given a name. They stay in this browser; to share one, share its URL. */
import { useState } from 'preact/hooks';
import { Field, Form, textIn } from '../../components/form';
import { Icon } from '../../components/icon';
import { Dialog } from '../../components/overlays';
import { href } from '../../core/base';
import { toast } from '../../core/dialogs';
import { url } from '../../core/router';

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

/** What the list shows now, as a view has it. */
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
        <button type="button" onClick={() => keep(views.filter((view) => view !== open))}>
          <Icon name="trash" size={14} />
          Delete view
        </button>
      ) : (
        search !== '' && (
          <button type="button" onClick={() => setNaming(true)}>
            <Icon name="filter" size={14} />
            Save view
          </button>
        )
      )}
      {naming && (
        <Dialog title="Save this view" onClose={() => setNaming(false)}>
          <Form
            action="Save"
            onCancel={() => setNaming(false)}
            onSubmit={async (form) => {
              const name = textIn(form, 'name');
              keep([...views.filter((view) => view.name !== name), { name, search }].slice(-MOST));
              setNaming(false);
              toast(`${name} is saved in this browser.`);
            }}
          >
            <Field label="Name" hint="The view is saved in this browser. To share it, share the URL.">
              <input name="name" required maxLength={40} autocomplete="off" />
            </Field>
          </Form>
        </Dialog>
      )}
    </>
  );
}
