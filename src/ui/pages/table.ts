/** All pages: one line each. A page is a folder beside this file; its code is loaded when it is first opened. */
import type { ComponentType } from 'preact';

export interface PageProps {
  params: Readonly<Record<string, string>>;
}

export interface TablePage {
  /** Below the dashboard's root; `:name` stands for a segment. */
  path: string;
  /** In the menu, and in the browser's title when the page sets none of its own. */
  title: string;
  /** After `g`. */
  key?: string;
  part?: 'work' | 'run' | 'watch';
  /** The scope without which the page is neither listed nor shown; default: `admin:read`. */
  scope?: string;
  load: () => Promise<{ default: ComponentType<PageProps> }>;
}

export const scopeOf = ({ scope = 'admin:read' }: TablePage): string => scope;

const DATA = 'data:read';

export const PAGES: readonly TablePage[] = [
  { path: '', title: 'Overview', key: 'o', part: 'work', load: () => import('./overview') },
  { path: 'queues', title: 'Queues', key: 'q', part: 'work', load: () => import('./queues') },
  { path: 'queues/:name', title: 'Queue', load: () => import('./queue') },
  { path: 'jobs', title: 'Jobs', key: 'j', part: 'work', load: () => import('./jobs') },
  { path: 'jobs/:id', title: 'Job', load: () => import('./job') },
  { path: 'failures', title: 'Failures', key: 'f', part: 'work', load: () => import('./failures') },
  { path: 'schedules', title: 'Schedules', key: 's', part: 'work', scope: DATA, load: () => import('./schedules') },
  { path: 'workflows', title: 'Workflows', key: 'w', part: 'work', scope: DATA, load: () => import('./workflows') },
  { path: 'workflows/:id', title: 'Workflow', scope: DATA, load: () => import('./workflow') },
  { path: 'workers', title: 'Workers', key: 'k', part: 'run', load: () => import('./workers') },
  { path: 'limits', title: 'Limits', key: 'l', part: 'run', scope: DATA, load: () => import('./limits') },
  { path: 'alerts', title: 'Alerts', key: 'r', part: 'watch', load: () => import('./alerts') },
  { path: 'events', title: 'Events', key: 'e', part: 'watch', scope: DATA, load: () => import('./events') },
  { path: 'webhooks', title: 'Webhooks', key: 'h', part: 'watch', load: () => import('./webhooks') },
  { path: 'audit', title: 'Audit', key: 'a', part: 'watch', load: () => import('./audit') },
  { path: 'settings', title: 'Settings', key: 't', part: 'run', load: () => import('./settings') },
];

export function pageOf(path: string): { page: TablePage; params: Record<string, string> } | undefined {
  const segments = path.split('/');
  for (const page of PAGES) {
    const pattern = page.path.split('/');
    if (pattern.length !== segments.length) continue;
    const params: Record<string, string> = {};
    const fits = pattern.every((part, index) => {
      const given = segments[index] ?? '';
      if (!part.startsWith(':')) return part === given;
      params[part.slice(1)] = decoded(given);
      return given !== '';
    });
    if (fits) return { page, params };
  }
  return undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
