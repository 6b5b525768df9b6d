/** The menu of pages. On a narrow screen it opens from the top bar. */
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { can } from '../core/api';
import { href, path } from '../core/router';
import { PAGES, scopeOf, type TablePage } from '../pages/table';
import { Icon, type IconName } from './icon';

/** Is it open, where it does not are next to the page? */
export const menuOpen = signal(false);

const PARTS = { work: 'Work', watch: 'Watch', run: 'Run' };

export function Menu() {
  const here = path.value;
  useEffect(() => {
    menuOpen.value = false;
  }, [here]);
  return (
    <nav id="menu" class={menuOpen.value ? 'open' : ''} aria-label="Pages">
      {Object.entries(PARTS).map(([part, title]) => {
        const pages = PAGES.filter((page) => page.part === part && can(scopeOf(page)));
        if (pages.length === 0) return null;
        return (
          <div key={part}>
            <h2>{title}</h2>
            <ul>
              {pages.map((page) => (
                <Entry key={page.path} page={page} isHere={here.split('/')[0] === page.path} />
              ))}
            </ul>
          </div>
        );
      })}
    </nav>
  );
}

const Entry = ({ page, isHere }: { page: TablePage; isHere: boolean }) => (
  <li>
    <a href={href(page.path)} aria-current={isHere ? 'page' : undefined}>
      <Icon name={(page.path || 'overview') as IconName} />
      <span>{page.title}</span>
      {page.key && (
        <span class="key" aria-hidden="true">
          g {page.key}
        </span>
      )}
    </a>
  </li>
);
