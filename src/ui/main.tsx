/** Starts the dashboard. */
import { render } from 'preact';
import { App } from './app';
import { startKeyboard } from './core/keyboard';
import { startRouter } from './core/router';

const root = document.getElementById('app');
if (root) {
  startRouter();
  startKeyboard();
  render(<App />, root);
}
