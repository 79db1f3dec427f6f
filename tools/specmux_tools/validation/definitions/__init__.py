"""An apiserver's checks of CustomResourceDefinitions."""
