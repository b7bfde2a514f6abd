"""Integrations of agent frameworks, one module each. A framework is imported only with its module."""
