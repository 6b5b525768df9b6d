/** Light, dark, or as the system has it. The choice stays in this browser. */
import { signal } from '@preact/signals';

export type Theme = 'auto' | 'light' | 'dark';

const KEY = 'tocsin.theme';

function stored(): Theme {
  const text = localStorage.getItem(KEY);
  return text === 'light' || text === 'dark' ? text : 'auto';
}

export const theme = signal<Theme>(stored());

export function setTheme(next: Theme): void {
  theme.value = next;
  if (next === 'auto') {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, next);
    document.documentElement.dataset.theme = next;
  }
}
