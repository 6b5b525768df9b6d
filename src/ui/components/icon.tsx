/** Icons: strokes on a grid of 24, drawn in the colour of the text around them. */

const PATHS = {
  overview: 'M3 13h4l3-8 4 14 3-6h4',
  queues: 'M4 6h16M4 12h16M4 18h10',
  jobs: 'M5 4h14v16H5zM9 9h6M9 13h6',
  failures: 'M12 4 2.8 20h18.4zM12 10v4M12 17v.1',
  schedules: 'M12 7v5l3 2M12 3a9 9 0 1 0 .01 0',
  workflows: 'M4 4h6v5H4zM14 15h6v5h-6zM7 9v8h7',
  workers: 'M4 5h16v10H4zM8 19h8M12 15v4',
  limits: 'M4 16a8 8 0 1 1 16 0M12 16l4-5',
  events: 'M4 12h2l2-5 3 10 3-12 2 7h4',
  webhooks: 'M9 8a3 3 0 1 1 4.6 2.5L16 15M12 7l-4 8M6 14a3 3 0 1 0 3 3h7m.5-2a3 3 0 1 1-.5 4',
  audit: 'M6 3h9l4 4v14H6zM10 12h5M10 16h5',
  settings: 'M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4',
  search: 'M10.5 4a6.5 6.5 0 1 0 .01 0M15.5 15.5 21 21',
  copy: 'M9 9h11v11H9zM5 15H4V4h11v1',
  check: 'm5 12 5 5 9-10',
  close: 'm6 6 12 12M18 6 6 18',
  menu: 'M4 6h16M4 12h16M4 18h16',
  pause: 'M8 5v14M16 5v14',
  play: 'm7 5 12 7-12 7z',
  retry: 'M4 12a8 8 0 1 1 2.5 5.8M4 20v-5h5',
  next: 'm9 5 7 7-7 7',
  back: 'm15 5-7 7 7 7',
  up: 'm6 14 6-6 6 6',
  down: 'm6 10 6 6 6-6',
  sun: 'M12 8a4 4 0 1 0 .01 0M12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6 19 19M19 5l-1.4 1.4M6.4 17.6 5 19',
  moon: 'M20 14A8.5 8.5 0 0 1 10 4a8.5 8.5 0 1 0 10 10z',
  auto: 'M12 3a9 9 0 1 0 .01 0M12 3v18M12 8h7M12 13h8.5M12 18h5',
  leave: 'M14 4H5v16h9M10 12h11M17 8l4 4-4 4',
  trash: 'M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13',
  edit: 'M4 20h4L20 8l-4-4L4 16z',
  plus: 'M12 5v14M5 12h14',
  filter: 'M4 5h16l-6 8v6l-4-2v-4z',
  alerts: 'M6 16v-5a6 6 0 1 1 12 0v5l1.5 2h-15zM10 21h4',
  available: 'M12 5a7 7 0 1 0 .01 0',
  active: 'M8 5l10 7-10 7z',
  waiting: 'M12 7v5l3 2M12 4a8 8 0 1 0 .01 0',
  completed: 'm5 13 4 4L19 7',
  discarded: 'm6 6 12 12M18 6 6 18',
  cancelled: 'M12 4a8 8 0 1 0 .01 0M6.5 6.5l11 11',
} as const;

export type IconName = keyof typeof PATHS;

/** An icon for the eye alone: the text next to it, or the button's `aria-label`, has its meaning. */
export const Icon = ({ name, size = 16 }: { name: IconName; size?: number }) => (
  <svg class="icon" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
    <path d={PATHS[name]} />
  </svg>
);

export const Bell = ({ size = 22 }: { size?: number }) => (
  <svg class="bell" width={size} height={size} viewBox="0 0 24 24" aria-hidden="true">
    <path d="M11 1.5h2V4h-2zM12 3.2c-4 0-6.4 3-6.4 7v3.6L3.4 17.6c-.4.7 0 1.4.8 1.4h15.6c.8 0 1.2-.7.8-1.4l-2.2-3.8v-3.6c0-4-2.4-7-6.4-7z" />
    <circle cx="12" cy="20.4" r="2.2" />
  </svg>
);
